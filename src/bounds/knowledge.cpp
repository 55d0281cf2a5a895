#include "rondo/bounds/knowledge.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>
#include <utility>

#include "both_directions.hpp"
#include "rondo/core/knowledge.hpp"
#include "rondo/graph/digraph.hpp"
#include "timed_network.hpp"

namespace rondo {
namespace {

/// Periods of a first look, and of the certificate: nearer to the bound than this many-th part no more
/// periods bring it.
constexpr std::size_t kFewPeriods = 48;
constexpr std::size_t kManyPeriods = 192;
/// Of destinations and sources the best ones of the first look are followed in many periods.
constexpr std::size_t kMostFollowed = 2;
/// Starts on links looked at, beyond which destinations that remain are left out; about 1 s.
constexpr std::size_t kMostKnowledgeWork = 8'000'000;
/// Around a destination and of sources: sets by distance.
constexpr std::size_t kMostDistances = 6;
/// Distances that differ by less are taken for equal.
constexpr double kSameDistance = 1e-9;
/// Times are earlier by this part than sums of delays, so that rounding puts no start a period later.
constexpr double kEarlier = 1e-11;
/// How much later than the best bound knowledge is followed at first, and each time that it goes on.
constexpr double kNextHorizon = 1.5;
constexpr int kMostHorizons = 8;
constexpr double kLeastKnowledgeGain = 1e-9;
/// Of the best bound: where no message costs as much, a few of them more gain next to nothing.
constexpr double kLeastShareOfMessage = 0.005;

class KnowledgeSearch {
 public:
  KnowledgeSearch(const Topology& topology, const Demand& demand, const std::vector<NodeSet>& cuts,
                  double least_us, bool backwards, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        cuts_(cuts),
        deadline_(deadline),
        counts_back_(backwards),
        turned_(reversed(topology.graph())),
        delay_us_(TimedNetwork(topology).delay_us),
        best_us_(least_us) {
    std::set<double> steps;
    for (const Link& link : topology.links()) {
      steps.insert(link.latency_us + link.message_us);
      if (!topology.is_gpu(link.src)) steps.insert(link.message_us);
    }
    for (const double step : steps) {
      if (step > 0 && (steps_us_.empty() || step > steps_us_.back() * (1 + kSameDistance)))
        steps_us_.push_back(step);
    }
    std::set<double> ready{0};
    for (const Contribution& part : demand.contributions()) {
      ready.insert(part.ready_us);
      ready.insert(part.source_ready_us.begin(), part.source_ready_us.end());
    }
    ready_us_.assign(ready.begin(), ready.end());
  }

  std::optional<LowerBound> run(const std::vector<GpuId>& destinations) {
    struct Candidate {
      KnowledgeCertificate certificate;
      double us;
    };
    std::vector<Candidate> candidates;
    for (const GpuId d : destinations) {
      for (KnowledgeCertificate& certificate : certificates_of(d)) {
        if (is_over()) break;
        const double us = followed(certificate, kFewPeriods);
        candidates.push_back({std::move(certificate), us});
      }
    }
    std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) { return a.us > b.us; });
    if (candidates.size() > kMostFollowed) candidates.resize(kMostFollowed);
    for (Candidate& candidate : candidates) keep_if_better(candidate.certificate, candidate.us);
    return std::move(best_);
  }

 private:
  bool is_over() const { return work_ > kMostKnowledgeWork || deadline_.is_over(); }

  std::vector<double> distances_to(GpuId d) const {
    return shortest_paths(turned_, delay_us_, topology_.node_of(d).value).distance;
  }

  /// Who has what `d` wants.
  std::vector<GpuId> sources_for(GpuId d) const {
    std::set<GpuId> sources;
    for (const Contribution& part : demand_.contributions()) {
      if (!std::ranges::binary_search(part.destinations, d)) continue;
      if (!part.reduce) {
        if (!std::ranges::binary_search(part.all_sources(), d)) sources.insert(part.origin);
      } else {
        sources.insert(part.sources.begin(), part.sources.end());
      }
    }
    sources.erase(d);
    return {sources.begin(), sources.end()};
  }

  std::vector<KnowledgeCertificate> certificates_of(GpuId d) const {
    const std::vector<double> distance = distances_to(d);
    const std::vector<GpuId> sources = sources_for(d);
    const std::size_t own = topology_.node_of(d).index();
    std::set<std::vector<NodeId>> sets;
    std::set<std::vector<GpuId>> groups;
    const auto add = [&](const auto& is_far) {
      std::vector<NodeId> near;
      for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
        if (!is_far(n)) near.emplace_back(n);
      }
      std::vector<GpuId> far;
      for (const GpuId g : sources) {
        if (is_far(topology_.node_of(g).index())) far.push_back(g);
      }
      if (near.size() < topology_.num_nodes()) sets.insert(std::move(near));
      if (!far.empty()) groups.insert(std::move(far));
    };
    for (const NodeSet& inside : cuts_) {
      if (!inside[own]) add([&](std::size_t n) { return inside[n] != 0; });
    }
    std::vector<double> radii(distance);
    std::ranges::sort(radii);
    double last_us = -1;
    std::size_t number = 0;
    for (const double radius : radii) {
      if (!std::isfinite(radius) || radius <= last_us * (1 + kSameDistance)) continue;
      last_us = radius;
      if (++number > kMostDistances) break;
      add([&](std::size_t n) { return distance[n] > radius * (1 + kSameDistance); });
    }
    if (!sources.empty()) groups.insert(sources);
    std::vector<KnowledgeCertificate> all;
    for (const std::vector<GpuId>& group : groups)
      all.push_back({.gpu = d,
                     .sources = group,
                     .sets = {sets.begin(), sets.end()},
                     .times_us = {},
                     .backwards = counts_back_});
    return all;
  }

  /// Sums of delays and message costs, ready times, and others between.
  std::vector<double> times_until(double end_us, std::size_t periods) const {
    std::set<double> sums;
    std::priority_queue<double, std::vector<double>, std::greater<>> open(ready_us_.begin(), ready_us_.end());
    while (!open.empty() && sums.size() <= periods) {
      const double us = open.top();
      open.pop();
      const auto above = sums.lower_bound(us * (1 - kSameDistance));
      if (us >= end_us || (above != sums.end() && *above <= us * (1 + kSameDistance))) continue;
      sums.insert(us);
      for (const double step : steps_us_) open.push(us + step);
    }
    if (sums.size() > periods) sums.clear();
    std::vector<double> times;
    for (const double us : sums) times.push_back(us * (1 - kEarlier));
    for (std::size_t i = 0; i <= periods; ++i)
      times.push_back(end_us * static_cast<double>(i) / static_cast<double>(periods));
    std::ranges::sort(times);
    // Of two that are near each other the earlier one is a sum.
    std::vector<double> apart;
    for (const double us : times) {
      if (apart.empty() || us > apart.back() + kSameDistance * end_us) apart.push_back(us);
    }
    return apart;
  }

  /// The certificate then has the times up to the one returned.
  double followed(KnowledgeCertificate& certificate, std::size_t periods) {
    double end_us = best_us_ * kNextHorizon;
    for (int i = 0; i < kMostHorizons; ++i, end_us *= kNextHorizon) {
      const double us = known_until(certificate, end_us, periods);
      if (us < certificate.times_us.back() || i + 1 == kMostHorizons) {
        std::erase_if(certificate.times_us, [&](double time) { return time > us; });
        return us;
      }
    }
    return 0;
  }

  double known_until(KnowledgeCertificate& certificate, double end_us, std::size_t periods) {
    certificate.times_us = times_until(end_us, periods);
    return known_until_us(topology_, demand_, certificate, work_);
  }

  void keep_if_better(KnowledgeCertificate& certificate, double first_us) {
    // In shorter periods it is a little later.
    const double end_us = first_us * (1 + 8.0 / kFewPeriods);
    if (end_us <= best_us_) return;
    double us = known_until(certificate, end_us, kManyPeriods);
    // Of the problem that is searched it is one of a destination, whichever way time is counted in the end.
    certificate.backwards = false;
    if (counts_back_) us = std::min(us, known_until_us(topology_, demand_, certificate, work_));
    std::erase_if(certificate.times_us, [&](double time) { return time > us; });
    if (us <= best_us_ * (1 + kLeastKnowledgeGain) || certificate.times_us.size() < 2) return;
    best_us_ = us;
    best_ = LowerBound{us, certificate};
  }

  const Topology& topology_;
  const Demand& demand_;
  const std::vector<NodeSet>& cuts_;
  const Deadline& deadline_;
  bool counts_back_;
  Digraph turned_;
  std::vector<double> delay_us_;
  double best_us_;
  std::vector<double> steps_us_ = {};
  std::vector<double> ready_us_ = {};
  std::optional<LowerBound> best_ = std::nullopt;
  std::size_t work_ = 0;
};

}  // namespace

std::optional<LowerBound> find_knowledge(const Topology& topology, const Demand& demand,
                                         const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                         double least_us, bool backwards, const Deadline& deadline) {
  double message_us = 0;
  for (const Link& link : topology.links()) message_us = std::max(message_us, link.message_us);
  if (message_us == 0 || message_us < kLeastShareOfMessage * least_us) return std::nullopt;
  return searched_in_both_directions(
      topology, demand, symmetry, cuts, least_us, [&](const OneSidedTask& task) {
        return KnowledgeSearch(task.topology, task.demand, task.cuts, task.least_us,
                               backwards || task.backwards, deadline)
            .run(task.destinations);
      });
}

}  // namespace rondo
