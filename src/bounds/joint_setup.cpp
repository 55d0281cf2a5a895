#include <map>

#include "joint_program.hpp"
#include "rondo/graph/digraph.hpp"
#include "timed_network.hpp"

namespace rondo {

void JointProgram::find_pairs(const Symmetry& symmetry) {
  const std::size_t nodes = topology_.num_nodes();
  const std::vector<int> orbits = pair_orbits(symmetry, nodes);
  pair_orbit_.assign(orbits.size(), 0);
  std::map<int, std::size_t> number;
  for (std::size_t p = 0; p < orbits.size(); ++p) {
    const NodeId from{p / nodes};
    const NodeId to{p % nodes};
    if (from == to || !ways_.is_place(from) || !ways_.is_place(to)) continue;
    const auto [known, is_new] = number.try_emplace(orbits[p], pairs_.size());
    if (is_new) pairs_.emplace_back();
    pairs_[known->second].emplace_back(from, to);
    pair_orbit_[p] = known->second;
  }
}

void JointProgram::find_targets(const Symmetry& symmetry) {
  const std::vector<double> delay_us = TimedNetwork(topology_).delay_us;
  std::map<int, std::size_t> target_of_orbit;
  const auto orbit = [&](GpuId g) { return symmetry.node_orbit[topology_.node_of(g).index()]; };
  for (const Contribution& part : demand_.contributions()) {
    for (const GpuId d : part.destinations) {
      const auto [known, is_new] = target_of_orbit.try_emplace(orbit(d), targets_.size());
      if (is_new) targets_.push_back({.gpu = d});
      Target& target = targets_[known->second];
      if (target.gpu == d)
        target.bytes_of[{topology_.node_of(part.origin), part.ready_us}] += part.bytes / unit_bytes_;
    }
  }
  const Digraph backwards = reversed(topology_.graph());
  for (Target& target : targets_) {
    const NodeId node = topology_.node_of(target.gpu);
    const Transversal transversal(symmetry, node);
    target.elements.push_back(transversal.element(node));
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (NodeId(n) != node && transversal.reaches(NodeId(n)))
        target.elements.push_back(transversal.element(NodeId(n)));
    }
    target.behind_us = shortest_paths(backwards, delay_us, node.value).distance;
    Digraph graph = topology_.graph();
    std::vector<double> length = delay_us;
    const int root = graph.num_nodes++;
    for (const auto& [from, bytes] : target.bytes_of) {
      graph.arcs.push_back({root, from.first.value});
      length.push_back(from.second);
    }
    target.earliest_us = shortest_paths(graph, length, root).distance;
    target.earliest_us.pop_back();
    periods_.add(target.earliest_us, target.behind_us);
  }
}

}  // namespace rondo
