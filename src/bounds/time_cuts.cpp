#include "rondo/bounds/time_cuts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "best_time_cut.hpp"
#include "both_directions.hpp"
#include "rondo/core/contribution_times.hpp"
#include "rondo/core/index.hpp"
#include "rondo/graph/digraph.hpp"
#include "unrolled_cut.hpp"

namespace rondo {
namespace {

/// Links looked at by shortest path searches, beyond which destinations that remain are left out; about 2 s.
constexpr std::size_t kMostPathWork = 50'000'000;
/// Where only known sets are tried, which gains little; about 0.3 s.
constexpr std::size_t kMostKnownWork = 5'000'000;
/// The same of arcs of unrolled networks, of which minimum cuts are found; about 10 s.
constexpr std::size_t kMostCutWork = 10'000'000;
/// Of sums, as many sources are tried for each destination, the farthest first.
constexpr std::size_t kMostSourcesOfSums = 4;
/// Bounds that differ by less are taken for equal.
constexpr double kLeastGain = 1e-9;
/// Of the time, where bandwidth changes.
constexpr double kLeastStep = 1e-7;
/// Where what is proven exceeds what the check accepts by rounding, or by links of a group that are not all
/// in use, the time is reduced by halving.
constexpr int kHalvings = 40;

/// A destination, and of sums that it wants whose data is looked at.
struct Target {
  GpuId destination;
  std::optional<GpuId> of_sums;
};

/// What a target wants of whom.
struct Wants {
  GpuId destination;
  std::vector<Supply> supplies;
};

class Collector {
 public:
  Collector(const Topology& topology, const Demand& demand) : topology_(topology), demand_(demand) {
    for (const Link& link : topology.links()) latency_us_.push_back(link.latency_us);
    backwards_ = reversed(topology.graph());
    if (!demand.is_unicast()) return;
    to_.resize(topology.num_gpus());
    for (const Contribution& part : demand.contributions())
      to_[part.destinations.front().index()].push_back(&part);
  }

  std::vector<Target> targets_of(GpuId destination) const {
    const std::vector<const Contribution*> parts = wanted_by(destination);
    if (std::ranges::none_of(parts, [](const Contribution* part) { return part->reduce; }))
      return {{destination, std::nullopt}};
    std::vector<Target> all;
    for (const GpuId source : farthest_sources(destination, parts)) all.push_back({destination, source});
    return all;
  }

  Wants wants_of(const Target& target) const {
    return {target.destination, supplies_of(target.destination, target.of_sums)};
  }

 private:
  std::vector<const Contribution*> wanted_by(GpuId destination) const {
    if (demand_.is_unicast()) return to_[destination.index()];
    std::vector<const Contribution*> parts;
    for (const Contribution& part : demand_.contributions()) {
      if (std::ranges::binary_search(part.destinations, destination)) parts.push_back(&part);
    }
    return parts;
  }

  std::vector<GpuId> farthest_sources(GpuId destination,
                                      const std::vector<const Contribution*>& parts) const {
    std::set<GpuId> sources;
    for (const Contribution* part : parts) {
      if (part->reduce) sources.insert(part->sources.begin(), part->sources.end());
    }
    sources.erase(destination);
    const auto distance =
        shortest_paths(backwards_, latency_us_, topology_.node_of(destination).value).distance;
    std::vector<GpuId> order(sources.begin(), sources.end());
    std::ranges::stable_sort(order, [&](GpuId a, GpuId b) {
      return distance[topology_.node_of(a).index()] > distance[topology_.node_of(b).index()];
    });
    order.resize(std::min(order.size(), kMostSourcesOfSums));
    return order;
  }

  /// Where the data of source number `source` of a sum is at first, or the datum.
  Supply supply_of(const Contribution& part, std::optional<std::size_t> source) const {
    Supply supply{part.bytes, {}};
    const auto sources = part.all_sources();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const bool is_told =
          std::ranges::any_of(part.held, [&](const HeldSum& held) { return held.gpu == sources[i]; });
      if ((source && *source != i) || is_told) continue;
      supply.holders.emplace_back(topology_.node_of(sources[i]), part.ready_us_of(i));
    }
    for (const HeldSum& held : part.held) {
      if (source && std::ranges::binary_search(held.sources, sources[*source]))
        supply.holders.emplace_back(topology_.node_of(held.gpu), 0.0);
    }
    std::ranges::sort(supply.holders);
    return supply;
  }

  /// For sums what `of_sums` has, where it has a part in them, else the first source.
  std::vector<Supply> supplies_of(GpuId destination, std::optional<GpuId> of_sums) const {
    std::map<std::vector<std::pair<NodeId, double>>, double> bytes;
    const NodeId node = topology_.node_of(destination);
    for (const Contribution* part : wanted_by(destination)) {
      std::optional<std::size_t> source;
      if (part->reduce) {
        const auto& sources = part->sources;
        const auto at = std::ranges::find(sources, of_sums.value_or(GpuId{}));
        source = at == sources.end() ? 0 : static_cast<std::size_t>(at - sources.begin());
      }
      const Supply supply = supply_of(*part, source);
      const bool is_there =
          std::ranges::any_of(supply.holders, [&](const auto& holder) { return holder.first == node; });
      if (!is_there && !supply.holders.empty()) bytes[supply.holders] += supply.bytes;
    }
    std::vector<Supply> supplies;
    for (const auto& [holders, sum] : bytes) supplies.push_back({sum, holders});
    return supplies;
  }

  const Topology& topology_;
  const Demand& demand_;
  std::vector<std::vector<const Contribution*>> to_ = {};  ///< unicast: per GPU, what it wants
  std::vector<double> latency_us_ = {};
  Digraph backwards_ = {};
};

class TimeCutSearch {
 public:
  TimeCutSearch(const Topology& topology, const Demand& demand, double least_us, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        deadline_(deadline),
        network_(topology),
        best_(topology, demand, least_us) {}

  std::optional<LowerBound> run(const std::vector<GpuId>& destinations, const std::vector<NodeSet>& cuts,
                                TimeCutEffort effort) {
    struct Candidate {
      Target target;
      double us;
    };
    std::vector<Candidate> candidates;
    const Collector collector(topology_, demand_);
    for (const GpuId d : destinations) {
      if (path_work_ > (effort == TimeCutEffort::all ? kMostPathWork : kMostKnownWork) || deadline_.is_over())
        break;
      for (const Target& target : collector.targets_of(d)) {
        const Wants wants = collector.wants_of(target);
        if (!wants.supplies.empty()) candidates.push_back({target, try_known_sets(wants, cuts)});
      }
    }
    if (effort == TimeCutEffort::known_sets) return best_.take();
    std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) { return a.us > b.us; });
    for (const Candidate& candidate : candidates) {
      if (cut_work_ > kMostCutWork || path_work_ > 2 * kMostPathWork || deadline_.is_over()) break;
      improve_sources(collector.wants_of(candidate.target));
    }
    return best_.take();
  }

 private:
  using Supplies = std::vector<const Supply*>;

  static Supplies all_of(const Wants& wants) {
    Supplies all;
    for (const Supply& supply : wants.supplies) all.push_back(&supply);
    return all;
  }

  /// The supplies that lie inside cuts around which the destination is.
  double try_known_sets(const Wants& wants, const std::vector<NodeSet>& cuts) {
    std::set<Supplies> sets{all_of(wants)};
    for (const NodeSet& inside : cuts) {
      if (inside[topology_.node_of(wants.destination).index()]) continue;
      Supplies within;
      for (const Supply& supply : wants.supplies) {
        const auto is_inside = [&](const auto& holder) { return inside[holder.first.index()] != 0; };
        if (std::ranges::all_of(supply.holders, is_inside)) within.push_back(&supply);
      }
      if (!within.empty()) sets.insert(std::move(within));
    }
    double best_us = 0;
    for (const Supplies& supplies : sets) best_us = std::max(best_us, try_supplies(wants, supplies));
    return best_us;
  }

  bool may_cut() const { return cut_work_ <= kMostCutWork && !deadline_.is_over(); }

  UnrolledCut cut_at(const Wants& wants, double us) {
    return unrolled_cut(network_, wants.supplies, topology_.node_of(wants.destination), us, cut_work_);
  }

  void improve_sources(const Wants& wants) {
    while (may_cut()) {
      const double before_us = best_.us();
      const UnrolledCut cut = cut_at(wants, before_us);
      if (cut.share >= 1 - kLeastGain) break;
      try_supplies(wants, cut.separated);
      if (best_.us() <= before_us * (1 + kLeastGain)) break;
    }
    if (topology_.has_bandwidth_steps()) approach(wants);
  }

  /// Where no closed form is known: to later and later times, in steps that are made smaller after a failure.
  void approach(const Wants& wants) {
    for (double gain = 0.25; gain > kLeastStep && may_cut();) {
      const double us = best_.us() * (1 + gain);
      if (!best_.keep_if_better({wants.destination, cut_at(wants, us).alpha_us})) gain /= 4;
    }
  }

  /// Returns the time before which the supplies cannot be at the destination.
  double try_supplies(const Wants& wants, const Supplies& supplies) {
    const NodeId target = topology_.node_of(wants.destination);
    QuickestFlow flow = quickest_flow(network_, supplies, target, path_work_);
    if (!(flow.us < std::numeric_limits<double>::infinity())) return 0;
    if (flow.us <= best_.us() * (1 + kLeastGain)) return flow.us;
    const double quickest_us = flow.us;
    if (best_.keep_if_better({wants.destination, std::move(flow.alpha_us)})) return best_.us();
    // Halving only pays as far as it beats what is known.
    double proven_us = best_.us();
    double refused_us = quickest_us;
    const auto is_proven = [&](double us) {
      flow = narrowest_time_cut(network_, supplies, target, us, path_work_);
      return best_.keep_if_better({wants.destination, std::move(flow.alpha_us)});
    };
    for (double step = 1e-13; step < 1e-9; step *= 10) {
      if (is_proven(quickest_us * (1 - step))) return best_.us();
    }
    if (network_.is_exact) return 0;
    for (int i = 0; i < kHalvings && refused_us - proven_us > kLeastGain * proven_us; ++i) {
      const double us = 0.5 * (proven_us + refused_us);
      (is_proven(us) ? proven_us : refused_us) = us;
    }
    return proven_us;
  }

  const Topology& topology_;
  const Demand& demand_;
  const Deadline& deadline_;
  TimedNetwork network_;
  BestTimeCut best_;
  std::size_t path_work_ = 0;
  std::size_t cut_work_ = 0;
};

}  // namespace

std::optional<LowerBound> find_time_cut(const Topology& topology, const Demand& demand,
                                        const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                        TimeCutEffort effort, double least_us, const Deadline& deadline) {
  return searched_in_both_directions(
      topology, demand, symmetry, cuts, least_us, [&](const OneSidedTask& task) {
        return TimeCutSearch(task.topology, task.demand, task.least_us, deadline)
            .run(task.destinations, task.cuts, effort);
      });
}

}  // namespace rondo
