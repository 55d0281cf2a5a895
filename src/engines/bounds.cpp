#include "rondo/engines/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "congestion_prices.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// One flag a node.
using NodeSet = std::vector<char>;

/// Relative; far above the rounding errors of a max-flow, far below what a bound is quoted to.
constexpr double kFlowTolerance = 1e-9;
/// sound_bound_of needs shortest paths from every link that leaves a cut; the cuts beyond are those of least
/// bandwidth bound.
constexpr std::size_t kMaxEvaluatedCuts = 256;
/// Links times maximum flows, beyond which destinations that remain are left out: about 10 s.
constexpr std::size_t kMaxFlowWork = 4'000'000;

/// A cut and its bound without latency: bytes that must leave over bandwidth that leaves.
struct CutCandidate {
  NodeSet inside;
  double bytes = 0;
  double bandwidth_bound_us = 0;
};

NodeSet complement(NodeSet set) {
  for (char& flag : set) flag = flag ? 0 : 1;
  return set;
}

class CutSearch {
 public:
  /// Of cuts that are equal by symmetry one is enough.
  CutSearch(const Topology& topology, const Demand& demand, const Symmetry& symmetry)
      : topology_(topology), demand_(demand) {
    std::set<int> orbits;
    for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
      const NodeId node = topology.node_of(GpuId{g});
      if (orbits.insert(symmetry.node_orbit[node.index()]).second) representatives_.push_back(node);
    }
    node_orbit_ = symmetry.node_orbit;
  }

  /// All different cuts found, best first.
  std::vector<CutCandidate> run() {
    add_simple_cuts();
    // A destination that the flow at T satisfies stays satisfied at every larger T: one pass over them is
    // enough.
    for (const NodeId n : representatives_) {
      if (flow_work_ > kMaxFlowWork) break;
      add_violated_cuts(topology_.gpu_of(n));
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const CutCandidate& a, const CutCandidate& b) {
                       return a.bandwidth_bound_us > b.bandwidth_bound_us;
                     });
    return std::move(candidates_);
  }

 private:
  void add_simple_cuts() {
    for (const NodeId n : representatives_) {
      NodeSet single(topology_.num_nodes(), 0);
      single[n.index()] = 1;
      add(single);
      add(complement(std::move(single)));
    }
    std::map<int, NodeSet> chassis;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      const Node& node = topology_.nodes()[n];
      if (node.chassis) chassis.try_emplace(*node.chassis, topology_.num_nodes(), 0).first->second[n] = 1;
    }
    std::set<std::vector<int>> looked_at;  // chassis with nodes of the same orbits are taken for equal
    for (const auto& [id, set] : chassis) {
      std::vector<int> orbits;
      for (std::size_t n = 0; n < set.size(); ++n) {
        if (set[n]) orbits.push_back(node_orbit_[n]);
      }
      std::sort(orbits.begin(), orbits.end());
      if (!looked_at.insert(std::move(orbits)).second) continue;
      add(set);
      add(complement(set));
      add_narrowest(set);
    }
  }

  /// The narrowest cuts between the GPUs of `group` and all others, out and in: behind the network cards the
  /// switches of a chassis may have less bandwidth than its GPUs.
  void add_narrowest(const NodeSet& group) {
    const int outside = static_cast<int>(topology_.num_nodes());
    const int inside = outside + 1;
    double all_GBps = 0;
    for (const Link& link : topology_.links()) all_GBps += link.bandwidth_GBps;
    for (const bool outwards : {true, false}) {
      Digraph graph = topology_.graph();
      graph.num_nodes += 2;
      std::vector<double> capacity;
      for (const Link& link : topology_.links()) capacity.push_back(link.bandwidth_GBps / all_GBps);
      for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
        if (!topology_.is_gpu(NodeId{n})) continue;
        const bool from_source = (group[n] != 0) == outwards;
        const int end = group[n] ? inside : outside;
        const int node = static_cast<int>(n);
        graph.arcs.push_back(from_source ? Arc{end, node} : Arc{node, end});
        capacity.push_back(1);
      }
      MinCut cut = min_cut(graph, capacity, outwards ? inside : outside, outwards ? outside : inside);
      cut.source_side.resize(topology_.num_nodes());
      add(std::move(cut.source_side));
    }
  }

  /// Returns the bound without latency; 0 where nothing has to leave or the set is known.
  double add(NodeSet inside) {
    if (!seen_.insert(inside).second) return 0;
    const double bytes = bytes_leaving(topology_, demand_, inside);
    double bandwidth = 0;
    for (const Link& link : topology_.links()) {
      if (inside[link.src.index()] && !inside[link.dst.index()]) bandwidth += link.bandwidth_GBps;
    }
    if (bytes <= 0 || bandwidth <= 0) return 0;
    const double bound = transmission_us(bytes, bandwidth);
    time_us_ = std::max(time_us_, bound);
    candidates_.push_back({std::move(inside), bytes, bound});
    return bound;
  }

  /// Newton's method on T: as long as the data that `destination` wants cannot reach it by T, the minimum cut
  /// is one that needs longer.
  void add_violated_cuts(GpuId destination) {
    const int super_source = static_cast<int>(topology_.num_nodes());
    Digraph graph = topology_.graph();
    ++graph.num_nodes;
    std::map<GpuId, double> wanted;
    for (const Contribution& c : demand_.contributions()) {
      if (std::binary_search(c.destinations.begin(), c.destinations.end(), destination))
        wanted[c.origin] += c.bytes;
    }
    double total = 0;
    for (const auto& [origin, bytes] : wanted) {
      graph.arcs.push_back({super_source, topology_.node_of(origin).value});
      total += bytes;
    }
    std::vector<double> capacity(graph.arcs.size());
    while (total > 0) {
      std::size_t arc = 0;
      for (const Link& link : topology_.links()) {
        capacity[arc++] = link.bandwidth_GBps * kBytesPerUsPerGBps * time_us_ / total;
      }
      for (const auto& [origin, bytes] : wanted) capacity[arc++] = bytes / total;
      flow_work_ += graph.arcs.size();
      MinCut cut = min_cut(graph, capacity, super_source, topology_.node_of(destination).value);
      if (cut.value >= 1 - kFlowTolerance) return;
      cut.source_side.pop_back();
      const double before = time_us_;
      if (add(std::move(cut.source_side)) <= before * (1 + kFlowTolerance)) return;
    }
  }

  const Topology& topology_;
  const Demand& demand_;
  std::vector<NodeId> representatives_;  ///< of the orbits of GPUs
  std::vector<int> node_orbit_;
  std::size_t flow_work_ = 0;
  double time_us_ = 0;  ///< the best bound so far, without latency
  std::vector<CutCandidate> candidates_;
  std::set<NodeSet> seen_;
};

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
              std::vector<LowerBound>& bounds) {
  const std::vector<CutCandidate> candidates = CutSearch(topology, demand, symmetry).run();
  double best_us = 0;
  std::size_t evaluated_cuts = 0;
  for (const CutCandidate& candidate : candidates) {
    // Latency adds at most its longest distance before, on and behind the links that leave.
    if (candidate.bandwidth_bound_us + 3 * latency_us < best_us || evaluated_cuts++ == kMaxEvaluatedCuts)
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

void add_metric(const Instance& links_only, const Instance& instance, Bounds& bounds) {
  std::vector<std::vector<double>> metrics;
  if (bounds.steady->field) {
    metrics.push_back(bounds.steady->field->link_price);
  } else {
    metrics = congestion_prices(*links_only.topology, instance.demand);
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

Bounds lower_bounds(const Instance& instance, const Toolbox& tools, bool use_symmetry) {
  const Topology& topology = *instance.topology;
  const Instance links_only = without_shared_bandwidth(instance);
  Bounds found;
  Toolbox whole = tools;  // a part proves nothing about the whole
  whole.solve_in_parts = nullptr;
  found.steady = std::make_shared<const SteadyFlow>(solve_steady_flow(links_only, whole, use_symmetry, {}));
  const Symmetry& symmetry = found.steady->symmetry;
  found.all.push_back(
      evaluated(topology, instance.demand, farthest_pair(topology, instance.demand, symmetry)));
  add_cuts(topology, instance.demand, symmetry, found.all.front().us, found.all);
  if (instance.demand.is_pairwise()) add_metric(links_only, instance, found);

  std::vector<std::size_t> order(found.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.all[a].us > found.all[b].us; });
  Bounds bounds{{}, std::move(found.remarks), std::move(found.steady)};
  for (const std::size_t i : order) bounds.all.push_back(std::move(found.all[i]));
  return bounds;
}

}  // namespace rondo
