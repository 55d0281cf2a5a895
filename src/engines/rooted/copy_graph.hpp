#pragma once

#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Instead of the number of an arc.
inline constexpr int kNoArc = -1;

/// A topology as out-trees see it: nodes at which data may be copied (GPUs, and switches that multicast),
/// under their numbers in the topology, and arcs between them.
struct CopyGraph {
  struct Arc {
    NodeId src;
    NodeId dst;
    std::vector<LinkId> links = {};  ///< through switches that do not copy
  };
  std::vector<Arc> arcs = {};
  std::vector<std::vector<int>> out = {};  ///< per node of the topology, its arcs
};

/// Links between such nodes, and where some switch does not copy, hops from GPU to GPU as hops_from() has
/// them: of many GPUs only to some others each.
CopyGraph make_copy_graph(const Topology& topology);

}  // namespace rondo
