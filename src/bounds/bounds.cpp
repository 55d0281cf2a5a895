#include "rondo/bounds/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "congestion_prices.hpp"
#include "rondo/bounds/cuts.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// sound_bound_of needs shortest paths from every link that leaves a cut; the cuts beyond are those of least
/// bandwidth bound.
constexpr std::size_t kMaxEvaluatedCuts = 256;
/// Of a time limit, what the steady-state flow may take; the rest is for cuts and for prices without it.
constexpr double kShareOfFlow = 0.7;

LowerBound evaluated(const Topology& topology, const Demand& demand, Certificate certificate) {
  const double us = sound_bound_of(topology, demand, certificate);
  return {us, std::move(certificate)};
}

/// Of the pairs that are equal by symmetry, those of one origin are enough.
LatencyCertificate farthest_pair(const Topology& topology, const Demand& demand, const Symmetry& symmetry) {
  std::vector<double> latency;
  for (const Link& link : topology.links()) latency.push_back(link.latency_us);
  std::map<int, GpuId> origin_of_orbit;
  std::map<GpuId, std::vector<double>> from;
  LatencyCertificate farthest;
  double distance = -1;
  for (const Contribution& c : demand.contributions()) {
    const NodeId node = topology.node_of(c.origin);
    const int orbit = symmetry.node_orbit[node.index()];
    if (origin_of_orbit.try_emplace(orbit, c.origin).first->second != c.origin) continue;
    auto [entry, is_new] = from.try_emplace(c.origin);
    if (is_new) entry->second = shortest_paths(topology.graph(), latency, node.value).distance;
    for (const GpuId d : c.destinations) {
      const double to_d = entry->second[topology.node_of(d).index()];
      if (to_d > distance) {
        distance = to_d;
        farthest = {c.origin, d};
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

}  // namespace

Bounds lower_bounds(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                    const SolveLimits& limits) {
  const Topology& topology = *instance.topology;
  const Deadline deadline(limits);
  const Instance links_only = without_shared_bandwidth(instance);
  Bounds found;
  Toolbox whole = tools;  // a part proves nothing about the whole
  whole.solve_in_parts = nullptr;
  found.steady = std::make_shared<const SteadyFlow>(
      solve_steady_flow(links_only, whole, use_symmetry, deadline.left_of({}, kShareOfFlow)));
  const Symmetry& symmetry = found.steady->symmetry;
  found.all.push_back(
      evaluated(topology, instance.demand, farthest_pair(topology, instance.demand, symmetry)));
  add_cuts(topology, instance.demand, symmetry, found.all.front().us, deadline, found.all);
  if (instance.demand.is_unicast()) add_metric(links_only, instance, deadline, found);

  std::vector<std::size_t> order(found.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.all[a].us > found.all[b].us; });
  Bounds bounds{{}, std::move(found.remarks), std::move(found.steady)};
  for (const std::size_t i : order) bounds.all.push_back(std::move(found.all[i]));
  return bounds;
}

}  // namespace rondo
