#include "rondo/bounds/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "congestion_prices.hpp"
#include "rondo/bounds/cuts.hpp"
#include "rondo/bounds/joint_cuts.hpp"
#include "rondo/bounds/knowledge.hpp"
#include "rondo/bounds/message_prices.hpp"
#include "rondo/bounds/partitions.hpp"
#include "rondo/bounds/prices.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/graph/digraph.hpp"
#include "timed_network.hpp"

namespace rondo {
namespace {

/// sound_bound_of needs shortest paths from every link that leaves a cut; the cuts beyond are those of least
/// bandwidth bound.
constexpr std::size_t kMaxEvaluatedCuts = 256;
/// Time cuts are tried along so many of the cuts, the best first.
constexpr std::size_t kMostCutsInTime = 4;
/// Of the best bound: where the longest distance is less, time cuts beyond the known sets gain next to
/// nothing.
constexpr double kLeastShareOfLatency = 0.005;
/// Links looked at for each destination of trees in one iteration, beyond which they are not packed for
/// their prices; about 0.1 s.
constexpr double kMostPricedWork = 1e6;
/// Of a time limit, what the steady-state flow may take; the rest is for cuts and for prices without it.
constexpr double kShareOfFlow = 0.7;

LowerBound evaluated(const Topology& topology, const Demand& demand, Certificate certificate) {
  const double us = sound_bound_of(topology, demand, certificate);
  return {us, std::move(certificate)};
}

/// The sources whose data nobody else has at first, or one of a datum of several holders.
std::vector<GpuId> lone_sources(const Contribution& part) {
  if (!part.reduce) return {part.origin};
  std::vector<GpuId> sources;
  for (const GpuId source : part.sources) {
    const bool is_held = std::ranges::any_of(part.held, [&](const HeldSum& held) {
      return held.gpu == source || std::ranges::binary_search(held.sources, source);
    });
    if (!is_held) sources.push_back(source);
  }
  return sources;
}

struct FarthestPair {
  LatencyCertificate pair;
  double us = 0;  ///< latencies and message costs on the way
};

/// Of the pairs that are equal by symmetry, those of one origin are enough. Nothing where no pair is found.
std::optional<FarthestPair> farthest_pair(const Topology& topology, const Demand& demand,
                                          const Symmetry& symmetry) {
  const std::vector<double> delay = TimedNetwork(topology).delay_us;
  std::map<int, GpuId> origin_of_orbit;
  std::map<GpuId, std::vector<double>> from;
  std::optional<FarthestPair> farthest;
  const auto distances_from = [&](GpuId g) -> const std::vector<double>& {
    auto [entry, is_new] = from.try_emplace(g);
    if (is_new) entry->second = shortest_paths(topology.graph(), delay, topology.node_of(g).value).distance;
    return entry->second;
  };
  for (const Contribution& c : demand.contributions()) {
    for (const GpuId source : lone_sources(c)) {
      const int orbit = symmetry.node_orbit[topology.node_of(source).index()];
      if (origin_of_orbit.try_emplace(orbit, source).first->second != source) continue;
      const std::span<const GpuId> holders = c.reduce ? std::span(&source, 1) : c.all_sources();
      for (const GpuId d : c.destinations) {
        if (d == source) continue;
        double to_d = std::numeric_limits<double>::infinity();
        for (const GpuId h : holders) to_d = std::min(to_d, distances_from(h)[topology.node_of(d).index()]);
        if (!farthest || to_d > farthest->us) farthest = {{source, d}, to_d};
      }
    }
  }
  return farthest;
}

void add_cuts(const Topology& topology, const Demand& demand, const Symmetry& symmetry, double latency_us,
              const Deadline& deadline, std::vector<LowerBound>& bounds) {
  const std::vector<Cut> candidates = find_cuts(topology, demand, symmetry, CutEffort::all, deadline);
  double best_us = 0;
  std::size_t evaluated_cuts = 0;
  for (const Cut& candidate : candidates) {
    // Latency adds at most its longest distance before, on and behind the links that leave.
    if (candidate.bandwidth_bound_us + 3 * latency_us < best_us || evaluated_cuts++ == kMaxEvaluatedCuts ||
        (best_us > 0 && deadline.is_over()))
      break;
    CutCertificate certificate{{}, candidate.bytes};
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      if (candidate.inside[n]) certificate.nodes.push_back(NodeId{n});
    }
    bounds.push_back(evaluated(topology, demand, std::move(certificate)));
    best_us = std::max(best_us, bounds.back().us);
  }
}

/// The metric certificate knows no shared bandwidth: its prices have to come from the links alone.
Instance without_shared_bandwidth(const Instance& instance) {
  if (instance.topology->shared_bandwidth().empty()) return instance;
  TopologyData data = instance.topology->data();
  data.shared_bandwidth.clear();
  return {std::make_shared<const Topology>(std::move(data)), instance.demand};
}

void add_metric(const Instance& links_only, const Instance& instance, const Deadline& deadline,
                Bounds& bounds) {
  std::vector<std::vector<double>> metrics;
  if (bounds.steady->field) {
    metrics.push_back(bounds.steady->field->link_price);
  } else {
    metrics = congestion_prices(*links_only.topology, instance.demand, deadline);
    bounds.remarks.push_back(
        fmt::format("{}: the metric bound comes from a heuristic's prices, a better one may exist",
                    bounds.steady->why_not));
  }
  for (std::vector<double>& length : metrics) {
    bounds.all.push_back(
        evaluated(*instance.topology, instance.demand, MetricCertificate{std::move(length)}));
  }
}

bool is_packed(const Instance& instance) {
  return takes_steiner_trees(instance.demand) && !instance.topology->has_bandwidth_steps() &&
         steiner_work(*instance.topology, instance.demand) <= kMostPricedWork;
}

void add_prices_of_trees(const Instance& instance, const Toolbox& tools, const Deadline& deadline,
                         Bounds& bounds) {
  bounds.packing = std::make_shared<const SteinerPacking>(
      pack_steiner_trees(*instance.topology, instance.demand, tools.column_master, kMostSteinerMasters,
                         deadline.after(kShareOfFlow)));
  bounds.all.push_back(evaluated(*instance.topology, instance.demand, bounds.packing->prices));
}

/// Those of the best cuts found.
std::vector<NodeSet> best_cut_sets(const Topology& topology, const std::vector<LowerBound>& bounds) {
  std::vector<const LowerBound*> best_cuts;
  for (const LowerBound& bound : bounds) {
    if (std::holds_alternative<CutCertificate>(bound.certificate)) best_cuts.push_back(&bound);
  }
  std::ranges::stable_sort(best_cuts, [](const LowerBound* a, const LowerBound* b) { return a->us > b->us; });
  if (best_cuts.size() > kMostCutsInTime) best_cuts.resize(kMostCutsInTime);
  std::vector<NodeSet> sets;
  for (const LowerBound* bound : best_cuts) {
    NodeSet& inside = sets.emplace_back(topology.num_nodes(), 0);
    for (const NodeId n : std::get<CutCertificate>(bound->certificate).nodes) inside[n.index()] = 1;
  }
  return sets;
}

double best_of(const std::vector<LowerBound>& bounds) {
  return bounds.empty() ? 0 : std::ranges::max(bounds, {}, &LowerBound::us).us;
}

/// Along the cuts found so far at least, and where latency matters wherever minimum cuts lead.
void add_time_cut(const Instance& instance, const Symmetry& symmetry, double latency_us,
                  const Deadline& deadline, std::vector<LowerBound>& bounds) {
  const Topology& topology = *instance.topology;
  const double best_us = best_of(bounds);
  const std::vector<NodeSet> sets = best_cut_sets(topology, bounds);
  const bool latency_matters = latency_us > kLeastShareOfLatency * best_us;
  auto found =
      find_time_cut(topology, instance.demand, symmetry, sets,
                    latency_matters ? TimeCutEffort::all : TimeCutEffort::known_sets, best_us, deadline);
  if (found) bounds.push_back(std::move(*found));
}

/// Of sums that several want: what time cuts take for one byte are several where they are not added up yet.
void add_counted_cut(const Instance& instance, const Symmetry& symmetry, const Deadline& deadline,
                     std::vector<LowerBound>& bounds) {
  const Topology& topology = *instance.topology;
  auto found = find_counted_cut(topology, instance.demand, symmetry, best_cut_sets(topology, bounds),
                                best_of(bounds), deadline);
  if (found) bounds.push_back(std::move(*found));
}

/// The symmetry of the links alone is not always one of what they share.
Symmetry symmetry_of_all(const Instance& instance, const Symmetry& of_links, bool use_symmetry) {
  const Topology& topology = *instance.topology;
  return use_symmetry && !topology.shared_bandwidth().empty() ? find_symmetry(topology, instance.demand)
                                                              : of_links;
}

void add_joint_cuts(const Instance& instance, const Toolbox& tools, const Symmetry& of_links,
                    bool use_symmetry, const Deadline& deadline, std::vector<LowerBound>& bounds) {
  if (!tools.simplex || !can_join_cuts(*instance.topology, instance.demand)) return;
  auto found =
      find_joint_cuts(*instance.topology, instance.demand, symmetry_of_all(instance, of_links, use_symmetry),
                      *tools.simplex, best_of(bounds), deadline);
  if (found) bounds.push_back(std::move(*found));
}

void add_knowledge(const Instance& instance, const Symmetry& symmetry, const Deadline& deadline,
                   std::vector<LowerBound>& bounds) {
  const Topology& topology = *instance.topology;
  auto found = find_knowledge(topology, instance.demand, symmetry, best_cut_sets(topology, bounds),
                              best_of(bounds), instance.backwards, deadline);
  if (found) bounds.push_back(std::move(*found));
}

void add_message_prices(const Instance& instance, const Toolbox& tools, const Symmetry& of_links,
                        bool use_symmetry, const Deadline& deadline, std::vector<LowerBound>& bounds) {
  auto found = find_message_prices(*instance.topology, instance.demand,
                                   symmetry_of_all(instance, of_links, use_symmetry), tools.column_master,
                                   best_of(bounds), deadline);
  if (found) bounds.push_back(std::move(*found));
}

/// Where latency matters, or links share bandwidth, which a metric does not know.
void add_prices(const Instance& instance, const Toolbox& tools, const Symmetry& of_links, bool use_symmetry,
                double latency_us, const Deadline& deadline, std::vector<LowerBound>& bounds) {
  const double best_us = std::ranges::max(bounds, {}, &LowerBound::us).us;
  const Topology& topology = *instance.topology;
  const bool shares = !topology.shared_bandwidth().empty();
  if (latency_us <= kLeastShareOfLatency * best_us && !shares) return;
  const Symmetry symmetry = symmetry_of_all(instance, of_links, use_symmetry);
  auto found = find_prices(topology, instance.demand, symmetry, tools.column_master, best_us, deadline);
  if (found) bounds.push_back(std::move(*found));
}

/// What is proven backwards knows no ready times: forwards, what the late GPUs bring has to leave them and
/// the others once it is there.
void add_time_cut_of_late(const Instance& instance, const Deadline& deadline,
                          std::vector<LowerBound>& bounds) {
  const Topology& topology = *instance.topology;
  std::vector<NodeSet> sets;
  for (const auto& [gpu, ready_us] : latest_sources(instance.demand)) {
    if (sets.size() == kMostCutsInTime) break;
    sets.emplace_back(topology.num_nodes(), 0)[topology.node_of(gpu).index()] = 1;
  }
  const Symmetry symmetry = find_symmetry(topology, instance.demand);
  auto found = find_time_cut(topology, instance.demand, symmetry, sets, TimeCutEffort::all, bounds.front().us,
                             deadline);
  if (!found) return;
  bounds.push_back(evaluated(topology, instance.demand, std::move(found->certificate)));
  std::ranges::stable_sort(bounds, std::ranges::greater{}, &LowerBound::us);
}

/// Of sums for one GPU each.
Bounds bounds_backwards(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                        const SolveLimits& limits) {
  const bool is_late = has_late_sums(instance.demand);
  const Demand on_time = is_late ? without_late_sums(instance.demand) : instance.demand;
  Instance backwards{std::make_shared<const Topology>(transposed(*instance.topology)), transposed(on_time)};
  backwards.backwards = true;
  backwards.is_part = instance.is_part;
  Bounds bounds = lower_bounds(backwards, tools, use_symmetry, limits);
  for (LowerBound& bound : bounds.all) bound.certificate = transposed(std::move(bound.certificate));
  if (is_late) add_time_cut_of_late(instance, Deadline(limits), bounds.all);
  if (auto found = find_knowledge_of_sums(instance, use_symmetry, bounds.best().us, Deadline(limits))) {
    bounds.all.push_back(std::move(*found));
    std::ranges::stable_sort(bounds.all, std::ranges::greater{}, &LowerBound::us);
  }
  return bounds;
}

}  // namespace

std::vector<const LowerBound*> Bounds::best_of_each_kind() const {
  std::vector<const LowerBound*> best;
  for (const LowerBound& bound : all) {
    const auto is_alike = [&](const LowerBound* better) {
      return better->certificate.index() == bound.certificate.index();
    };
    if (std::ranges::none_of(best, is_alike)) best.push_back(&bound);
  }
  return best;
}

std::optional<LowerBound> find_knowledge_of_sums(const Instance& instance, bool use_symmetry, double least_us,
                                                 const Deadline& deadline) {
  const Topology& topology = *instance.topology;
  if (!topology.has_message_costs()) return std::nullopt;
  const Symmetry symmetry =
      use_symmetry ? find_symmetry(topology, instance.demand) : trivial_symmetry(topology);
  return find_knowledge(topology, instance.demand, symmetry, {}, least_us, instance.backwards, deadline);
}

Bounds lower_bounds(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                    const SolveLimits& limits) {
  if (instance.demand.kind() == DemandKind::reduction)
    return bounds_backwards(instance, tools, use_symmetry, limits);
  const Topology& topology = *instance.topology;
  const Deadline deadline(limits);
  const Instance links_only = without_shared_bandwidth(instance);
  Bounds found;
  Toolbox whole = tools;  // a part proves nothing about the whole
  whole.solve_in_parts = nullptr;
  found.steady = std::make_shared<const SteadyFlow>(
      solve_steady_flow(links_only, whole, use_symmetry, deadline.left_of({}, kShareOfFlow)));
  const Symmetry& symmetry = found.steady->symmetry;
  double latency_us = 0;
  if (const auto farthest = farthest_pair(topology, instance.demand, symmetry)) {
    found.all.push_back(evaluated(topology, instance.demand, farthest->pair));
    latency_us = farthest->us;
  }
  add_cuts(topology, instance.demand, symmetry, latency_us, deadline, found.all);
  if (instance.demand.kind() == DemandKind::all_reduction) {
    for (PartitionCertificate& partition : find_partitions(topology, instance.demand, deadline))
      found.all.push_back(evaluated(topology, instance.demand, std::move(partition)));
  }
  if (instance.demand.is_unicast()) add_metric(links_only, instance, deadline, found);
  if (is_packed(instance)) add_prices_of_trees(instance, tools, deadline, found);
  add_time_cut(instance, symmetry, latency_us, deadline, found.all);
  if (instance.demand.is_unicast() && !found.all.empty())
    add_prices(instance, tools, symmetry, use_symmetry, latency_us, deadline, found.all);
  if (!found.all.empty()) add_joint_cuts(instance, tools, symmetry, use_symmetry, deadline, found.all);
  if (!found.all.empty()) add_knowledge(instance, symmetry, deadline, found.all);
  if (!found.all.empty() && !instance.is_part)
    add_message_prices(instance, tools, symmetry, use_symmetry, deadline, found.all);
  if (instance.demand.kind() == DemandKind::all_reduction && latency_us > 0)
    add_counted_cut(instance, symmetry, deadline, found.all);

  if (found.all.empty()) {
    throw Error(
        ExitCode::bad_data,
        "no byte has to move: every destination holds at first what it wants; name one that does not");
  }

  std::vector<std::size_t> order(found.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.all[a].us > found.all[b].us; });
  Bounds bounds{{}, std::move(found.remarks), std::move(found.steady), std::move(found.packing)};
  for (const std::size_t i : order) bounds.all.push_back(std::move(found.all[i]));
  return bounds;
}

}  // namespace rondo
