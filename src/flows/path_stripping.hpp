#pragma once

#include <vector>

#include "rondo/decomp/columns.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {

/// Makes flows of blocks exact that are nearly so.
class PathStripping {
 public:
  /// `length`: one value >= 0 an arc, of the shortest paths that take what is missing.
  PathStripping(const Digraph& graph, const std::vector<double>& length);

  /// A flow that brings every sink what it wants: along paths within `amount` (one value >= 0 an arc), found
  /// from the sink backwards and of the fewest arcs, and the rest along the shortest path. Ascending arcs.
  /// Throws Error(unavailable) where the source cannot reach a sink.
  std::vector<ArcLoad> exact_flow(const CommodityBlock& block, std::vector<double> amount);

 private:
  /// The arcs of a path whose amounts are above `least`, from the sink back; empty where there is none.
  const std::vector<std::size_t>& path_within(const std::vector<double>& amount, double least, int source,
                                              int sink);

  const Digraph& graph_;
  ShortestPathSearch search_;
  std::vector<std::vector<std::size_t>> in_;  ///< arcs into a node
  std::vector<int> next_arc_;                 ///< per node that was seen: towards the sink; else -1
  std::vector<int> seen_;
  std::vector<std::size_t> path_;
};

}  // namespace rondo
