#include "rondo/bounds/cuts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "rondo/core/certificate.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// Relative; far above the rounding errors of a max-flow, far below what a bound is quoted to.
constexpr double kFlowTolerance = 1e-9;
/// Links times maximum flows, beyond which destinations that remain are left out: about 10 s.
constexpr std::size_t kMaxFlowWork = 4'000'000;

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
  std::vector<Cut> run(CutEffort effort) {
    add_simple_cuts();
    // A destination that the flow at T satisfies stays satisfied at every larger T: one pass over them is
    // enough.
    for (const NodeId n : representatives_) {
      if (effort == CutEffort::simple || flow_work_ > kMaxFlowWork) break;
      add_violated_cuts(topology_.gpu_of(n));
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Cut& a, const Cut& b) { return a.bandwidth_bound_us > b.bandwidth_bound_us; });
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
  std::vector<Cut> candidates_;
  std::set<NodeSet> seen_;
};

}  // namespace

std::vector<Cut> find_cuts(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                           CutEffort effort) {
  return CutSearch(topology, demand, symmetry).run(effort);
}

std::vector<std::vector<double>> narrowest_cut_prices(const Topology& topology, const Demand& demand) {
  const std::vector<Cut> cuts = find_cuts(topology, demand, trivial_symmetry(topology), CutEffort::simple);
  if (cuts.empty()) return {};
  std::vector<double> price;
  for (const Link& link : topology.links()) {
    const bool leaves =
        cuts.front().inside[link.src.index()] != 0 && cuts.front().inside[link.dst.index()] == 0;
    price.push_back(leaves ? 1 : 0);
  }
  return {std::move(price)};
}

}  // namespace rondo
