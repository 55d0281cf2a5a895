#pragma once

#include <compare>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "clusters.hpp"
#include "rondo/model/formulation.hpp"

/// What a cluster has to carry of a flow over time that is decided between the clusters.
namespace rondo {

/// A link between clusters and the epochs from .. to - 1 of an interval in which it is used.
struct Crossing {
  LinkId link;
  int epoch = 0;
  int from = 0;
  int to = 0;
  friend auto operator<=>(const Crossing&, const Crossing&) = default;
};

/// Data that comes into a cluster ends at one of its GPUs, or leaves it over a crossing.
using Goal = std::variant<NodeId, Crossing>;

/// Part of the topology, with the number of its nodes and links.
struct Piece {
  TopologyData data = {};
  std::map<NodeId, NodeId> node = {};  ///< of the topology's
  std::vector<LinkId> link = {};       ///< of the topology, per link

  NodeId add(const Node& added) {
    data.nodes.push_back(added);
    return NodeId{data.nodes.size() - 1};
  }
  void add(LinkId of_fabric, Link copy) {
    copy.src = node.at(copy.src);
    copy.dst = node.at(copy.dst);
    data.links.push_back(copy);
    link.push_back(of_fabric);
  }
};

/// What goes on in one cluster.
struct Inside {
  std::map<std::pair<NodeId, NodeId>, double> local = {};  ///< bytes between its GPUs
  std::map<std::pair<NodeId, Crossing>, double> out = {};  ///< its GPUs' bytes that leave it
  std::map<Goal, std::map<Crossing, Shares>> in = {};      ///< others' bytes, by where they enter
  std::map<NodeId, double> ready_us = {};
  bool is_empty() const { return local.empty() && out.empty() && in.empty(); }
};

/// A cluster's problem. Behind the nodes of the cluster stand one that is outside, where all that leaves ends
/// up, and the origins of what comes in, one a goal.
struct InsideProblem {
  Piece piece;
  Instance instance;
  std::map<GpuId, GpuId> gpu = {};  ///< of the topology, of those of the piece that send their own
  std::map<GpuId, Goal> goal = {};  ///< of those that bring in what others sent
};

/// With the grid of `whole`.
Instance instance_of(const Instance& whole, const Piece& piece, Demand demand);

/// `cluster_of_node`: -1 between clusters; `delay`: epochs, of links between clusters.
InsideProblem inside_problem(const Instance& whole, const std::vector<int>& cluster_of_node, int cluster,
                             const Inside& inside, const std::map<LinkId, int>& delay);

}  // namespace rondo
