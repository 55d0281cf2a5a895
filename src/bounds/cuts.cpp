#include "rondo/bounds/cuts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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
      : topology_(topology), demand_(demand), graph_(with_super_source(topology)) {
    std::set<int> orbits;
    for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
      const NodeId node = topology.node_of(GpuId{g});
      if (orbits.insert(symmetry.node_orbit[node.index()]).second) representatives_.push_back(node);
    }
    node_orbit_ = symmetry.node_orbit;
    if (!demand.is_unicast()) return;
    from_.resize(topology.num_gpus());
    to_.resize(topology.num_gpus());
    for (const Contribution& c : demand.contributions()) {
      from_[c.origin.index()].push_back(&c);
      to_[c.destinations.front().index()].push_back(&c);
    }
  }

  /// All different cuts found, best first.
  std::vector<Cut> run(CutEffort effort, const Deadline& deadline) {
    add_simple_cuts();
    if (demand_.has_several_sources()) {
      if (effort == CutEffort::all) add_cuts_of_sums(deadline);
      return best_first();
    }
    // A destination that the flow at T satisfies stays satisfied at every larger T: one pass over them is
    // enough.
    for (const NodeId n : representatives_) {
      if (effort == CutEffort::simple || flow_work_ > kMaxFlowWork || deadline.is_over()) break;
      add_violated_cuts(topology_.gpu_of(n));
    }
    return best_first();
  }

 private:
  std::vector<Cut> best_first() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Cut& a, const Cut& b) { return a.bandwidth_bound_us > b.bandwidth_bound_us; });
    return std::move(candidates_);
  }

  /// The topology's links, then an arc from a super-source to each GPU.
  static Digraph with_super_source(const Topology& topology) {
    Digraph graph = topology.graph();
    const int source = graph.num_nodes++;
    for (std::size_t g = 0; g < topology.num_gpus(); ++g)
      graph.arcs.push_back({source, topology.node_of(GpuId{g}).value});
    return graph;
  }

  /// bytes_leaving(), which goes through all pairs; here those of the GPUs on the smaller side.
  double leaving(const NodeSet& inside) const {
    if (!demand_.is_unicast()) return bytes_leaving(topology_, demand_, inside);
    const auto is_inside = [&](GpuId g) { return inside[topology_.node_of(g).index()] != 0; };
    std::vector<std::size_t> side[2];
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) side[is_inside(GpuId{g}) ? 1 : 0].push_back(g);
    double bytes = 0;
    if (side[1].size() <= side[0].size()) {
      for (const std::size_t g : side[1]) {
        for (const Contribution* c : from_[g]) bytes += is_inside(c->destinations.front()) ? 0 : c->bytes;
      }
    } else {
      for (const std::size_t g : side[0]) {
        for (const Contribution* c : to_[g]) bytes += is_inside(c->origin) ? c->bytes : 0;
      }
    }
    return bytes;
  }

  /// Per GPU, what `destination` wants of it.
  std::vector<double> wanted_by(GpuId destination) const {
    std::vector<double> wanted(topology_.num_gpus(), 0.0);
    if (demand_.is_unicast()) {
      for (const Contribution* c : to_[destination.index()]) wanted[c->origin.index()] += c->bytes;
      return wanted;
    }
    for (const Contribution& c : demand_.contributions()) {
      if (std::binary_search(c.destinations.begin(), c.destinations.end(), destination))
        wanted[c.origin.index()] += c.bytes;
    }
    return wanted;
  }

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
    const double bytes = leaving(inside);
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
    const std::vector<double> wanted = wanted_by(destination);
    const double total = std::accumulate(wanted.begin(), wanted.end(), 0.0);
    const auto origins =
        wanted.size() - static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), 0.0));
    while (total > 0) {
      std::vector<double> capacity;
      for (const Link& link : topology_.links())
        capacity.push_back(link.bandwidth_GBps * kBytesPerUsPerGBps * time_us_ / total);
      for (const double bytes : wanted) capacity.push_back(bytes / total);
      flow_work_ += topology_.num_links() + origins;
      MinCut cut = min_cut(graph_, capacity, static_cast<int>(topology_.num_nodes()),
                           topology_.node_of(destination).value);
      if (cut.value >= 1 - kFlowTolerance) return;
      cut.source_side.pop_back();
      const double before = time_us_;
      if (add(std::move(cut.source_side)) <= before * (1 + kFlowTolerance)) return;
    }
  }

  /// Whether as much bandwidth leads into every node as out of it, and so into every set of nodes.
  bool is_balanced() const {
    std::vector<double> surplus(topology_.num_nodes(), 0.0);
    double all_GBps = 0;
    for (const Link& link : topology_.links()) {
      surplus[link.dst.index()] += link.bandwidth_GBps;
      surplus[link.src.index()] -= link.bandwidth_GBps;
      all_GBps += link.bandwidth_GBps;
    }
    return std::ranges::all_of(surplus, [&](double s) { return std::abs(s) <= kFlowTolerance * all_GBps; });
  }

  /// The narrowest cuts, one way and the other, between one member and every other: where all give to a sum
  /// and want it, the narrowest of all is among them. Where the fabric is balanced the partition in two along
  /// a cut gives as much as the cut.
  void add_cuts_of_sums(const Deadline& deadline) {
    if (is_balanced()) return;
    double all_GBps = 0;
    for (const Link& link : topology_.links()) all_GBps += link.bandwidth_GBps;
    std::vector<double> capacity;
    for (const Link& link : topology_.links()) capacity.push_back(link.bandwidth_GBps / all_GBps);
    const std::vector<GpuId> members = demand_.members();
    const int first = topology_.node_of(members.front()).value;
    for (const GpuId member : members) {
      const int other = topology_.node_of(member).value;
      if (other == first) continue;
      if (flow_work_ > kMaxFlowWork || deadline.is_over()) return;
      flow_work_ += 2 * topology_.num_links();
      add(min_cut(topology_.graph(), capacity, first, other).source_side);
      add(min_cut(topology_.graph(), capacity, other, first).source_side);
    }
  }

  const Topology& topology_;
  const Demand& demand_;
  std::vector<NodeId> representatives_;  ///< of the orbits of GPUs
  std::vector<int> node_orbit_;
  std::vector<std::vector<const Contribution*>> from_;  ///< unicast: per GPU, what it sends
  std::vector<std::vector<const Contribution*>> to_;    ///< unicast: per GPU, what it wants
  Digraph graph_;
  std::size_t flow_work_ = 0;
  double time_us_ = 0;  ///< the best bound so far, without latency
  std::vector<Cut> candidates_;
  std::set<NodeSet> seen_;
};

}  // namespace

std::vector<Cut> find_cuts(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                           CutEffort effort, const Deadline& deadline) {
  return CutSearch(topology, demand, symmetry).run(effort, deadline);
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
