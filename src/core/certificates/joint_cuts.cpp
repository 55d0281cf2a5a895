#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "kinds.hpp"
#include "timed_prices.hpp"

/// Time cuts that share the links: FORMATS.md 3 has the arithmetic and why it holds.
namespace rondo::certificates {
namespace {

/// For so many links of a way it is told when its byte is where; behind more, and where switches keep it, it
/// may be there at any time from then on.
constexpr std::size_t kMostExactLinks = 6;
/// Ways times time cuts that are looked at; about 1 s.
constexpr std::size_t kMostWork = 300'000'000;

class JointCheck {
 public:
  JointCheck(const Topology& topology, const Demand& demand, const JointCutsCertificate& joint)
      : topology_(topology), demand_(demand), joint_(joint), prices_(topology, joint.prices) {
    find_places();
    for (const WeightedTimeCut& cut : joint.cuts) {
      check_opening(topology, cut.gpu, cut.alpha_us);
      if (!(cut.weight >= 0) || !std::isfinite(cut.weight))
        refuse_certificate(
            fmt::format("a time cut weighs {}; weights are finite and not negative", cut.weight));
      const double opens_us = cut.alpha_us[topology.node_of(cut.gpu).index()];
      if (opens_us < joint.prices.until_us) {
        refuse_certificate(fmt::format("GPU {} is open from {} us on; it has to be closed until {}",
                                       cut.gpu.value, opens_us, joint.prices.until_us));
      }
      weights_.push_back(cut.weight);
      all_weights_ += cut.weight;
    }
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      for (const WeightedTimeCut& cut : joint.cuts) alpha_us_.push_back(cut.alpha_us[n]);
    }
  }

  /// Refuses where a way pays less than the weights that it takes a byte through.
  void check_ways() {
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (!is_place_[n]) continue;
      std::set<double> costs_us;
      for (const LinkId l : topology_.out_links(NodeId(n)))
        costs_us.insert(topology_.message_us_at_start(topology_.link(l)));
      for (const double cost_us : costs_us) check_ways_from(NodeId(n), cost_us);
    }
  }

  double bound() const {
    Exact payments = 0;
    for (const WeightedTimeCut& cut : joint_.cuts) {
      if (cut.weight > 0)
        payments += cut.weight * bytes_that_start_open(topology_, demand_, cut.gpu, cut.alpha_us);
    }
    // What ends before the bound may have used all that links can earn: they have to earn less.
    return prices_.bound(payments, -kSumTolerance);
  }

 private:
  /// A byte on its way, at a node that passes it on or where it begins.
  struct Label {
    Exact paid;
    NodeId at;
    std::size_t links;      ///< so far; beyond kMostExactLinks it may be kept
    double first_from_us;   ///< it started on the first link then or later,
    double first_until_us;  ///< and before
    double since_us;        ///< latencies since then
    double from_us;         ///< it is there no earlier
    bool operator>(const Label& other) const {
      return std::tie(paid, from_us) > std::tie(other.paid, other.from_us);
    }
  };

  void find_places() {
    bool adds = false;
    for (const Contribution& part : demand_.contributions()) adds = adds || part.reduce;
    for (const Node& node : topology_.nodes()) {
      is_place_.push_back(node.kind == NodeKind::gpu || node.multicast || (adds && node.reduce));
    }
  }

  /// By Dijkstra's search over the switches that pass on.
  void check_ways_from(NodeId from, double cost_us) {
    std::set<std::tuple<NodeId, double, double, double>> seen;
    // Of what may be kept, started before the same time and pays no less, only what is earlier can be taken
    // by more cuts.
    std::map<std::pair<NodeId, double>, double> earliest_us;
    std::priority_queue<Label, std::vector<Label>, std::greater<>> labels;
    const auto take = [&](LinkId l, std::size_t period, Label label) {
      const Link& link = topology_.link(l);
      label.paid += prices_.of(period, l);
      label.from_us = std::max(label.from_us, prices_.from_us(period));
      if (label.links <= kMostExactLinks) {
        label.first_from_us =
            std::max(label.first_from_us, sum_rounded_down(prices_.from_us(period), -label.since_us));
        label.first_until_us =
            std::min(label.first_until_us, sum_rounded_up(prices_.end_us(period), -label.since_us));
        if (!(label.first_from_us < label.first_until_us)) return;
      }
      label.since_us = sum_rounded_down(label.since_us, link.latency_us);
      label.from_us = std::max(sum_rounded_down(label.from_us, link.latency_us),
                               sum_rounded_down(label.first_from_us, label.since_us));
      label.at = link.dst;
      if (label.paid >= all_weights_) return;
      if (is_place_[link.dst.index()]) return check_way(from, cost_us, label);
      label.links = topology_.node(link.dst).stores() ? kMostExactLinks + 1 : label.links + 1;
      if (label.from_us < joint_.prices.until_us) labels.push(label);
    };
    for (const LinkId l : topology_.out_links(from)) {
      if (topology_.message_us_at_start(topology_.link(l)) != cost_us) continue;
      for (std::size_t period = 0; period < prices_.num_periods(); ++period)
        take(l, period, {0, from, 0, 0, joint_.prices.until_us, 0, 0});
    }
    while (!labels.empty()) {
      const Label label = labels.top();
      labels.pop();
      const bool is_exact = label.links <= kMostExactLinks;
      if (is_exact) {
        if (!seen.emplace(label.at, label.since_us, label.first_from_us, label.first_until_us).second)
          continue;
      } else {
        const auto [known, is_new] = earliest_us.try_emplace({label.at, label.first_until_us}, label.from_us);
        if (!is_new && known->second <= label.from_us) continue;
        known->second = label.from_us;
      }
      const double until_us =
          is_exact ? sum_rounded_up(label.first_until_us, label.since_us) : joint_.prices.until_us;
      for (const LinkId l : topology_.out_links(label.at)) {
        Label next = label;
        next.from_us = sum_rounded_down(label.from_us, topology_.message_us_at_start(topology_.link(l)));
        for (std::size_t period = prices_.period_at(next.from_us);
             period < prices_.num_periods() && prices_.from_us(period) < until_us; ++period)
          take(l, period, next);
      }
    }
  }

  /// Refuses where, at some start, what takes the way weighs more than it pays.
  void check_way(NodeId from, double cost_us, const Label& label) {
    if ((work_ += weights_.size()) > kMostWork)
      refuse_certificate(fmt::format("{} time cuts take more ways than can be checked", weights_.size()));
    const double* const opens_us = &alpha_us_[from.index() * weights_.size()];
    const double* const closes_us = &alpha_us_[label.at.index() * weights_.size()];
    const Exact most = label.paid * (1 + kSumTolerance);
    Exact weights = 0;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      if (label.from_us < closes_us[k] && opens_us[k] < label.first_until_us) weights += weights_[k];
    }
    if (weights <= most) return;
    if (label.links <= kMostExactLinks) weights = greatest_weights(opens_us, closes_us, cost_us, label);
    if (weights <= most) return;
    refuse_certificate(fmt::format(
        "a byte that is at node {} from {} us on pays {} on its way from node {}; the time cuts that "
        "it goes through weigh {}",
        label.at.value, label.from_us, static_cast<double>(label.paid), from.value,
        static_cast<double>(weights)));
  }

  /// Over the starts that the label stands for: each cut takes those from when it is open on, as long as it
  /// is not yet open where the byte arrives.
  Exact greatest_weights(const double* opens_us, const double* closes_us, double cost_us,
                         const Label& label) const {
    std::vector<std::pair<double, double>> changes;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const double from_us = std::max(label.first_from_us, sum_rounded_down(opens_us[k], cost_us));
      const double until_us = std::min(label.first_until_us, sum_rounded_up(closes_us[k], -label.since_us));
      if (!(from_us < until_us)) continue;
      changes.emplace_back(from_us, weights_[k]);
      changes.emplace_back(until_us, -weights_[k]);
    }
    std::ranges::sort(changes);
    Exact greatest = 0;
    Exact weights = 0;
    for (const auto& [us, change] : changes) {
      weights += change;
      greatest = std::max(greatest, weights);
    }
    return greatest;
  }

  const Topology& topology_;
  const Demand& demand_;
  const JointCutsCertificate& joint_;
  TimedPrices prices_;
  std::vector<double> weights_ = {};
  std::vector<double> alpha_us_ = {};  ///< per node, of each cut
  Exact all_weights_ = 0;
  std::vector<char> is_place_ = {};
  std::size_t work_ = 0;
};

}  // namespace

double bound(const Topology& topology, const Demand& demand, const JointCutsCertificate& joint) {
  JointCheck check(topology, demand, joint);
  check.check_ways();
  return check.bound();
}

}  // namespace rondo::certificates
