#pragma once

#include <optional>
#include <vector>

#include "copy_graph.hpp"
#include "out_tree.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What an arc counts for in a tree.
struct ArcFigures {
  double cost = 0;   ///< of the links that it takes
  double delay = 0;  ///< by which what is behind it comes later, in the unit of the costs
  double us = 0;     ///< the same, for a bound of depth
};

/// Grows out-trees from `root` until they reach all of `terminals`; other nodes are taken where they help.
class OutTreeGrowth {
 public:
  OutTreeGrowth(const Topology& topology, const CopyGraph& graph, GpuId root,
                const std::vector<GpuId>& terminals);

  /// The arcs of a tree, a parent's before its children's. The terminal that is cheapest to reach is joined
  /// until all are, by the cost of the arcs that are new and the delay of all from the root (Takahashi and
  /// Matsuyama, "An approximate solution for the Steiner problem in graphs", Math. Japonica 24, 1980, with a
  /// price on depth). Throws Error(unavailable) where a terminal is not reached.
  std::vector<int> grow(const std::vector<ArcFigures>& figures);
  /// The same with no path longer than `most_us`; nothing where a terminal is not reached so.
  std::optional<std::vector<int>> grow_within(const std::vector<ArcFigures>& figures, double most_us);

 private:
  const Topology& topology_;
  const CopyGraph& graph_;
  NodeId root_;
  std::size_t num_terminals_;
  std::vector<char> is_terminal_;  ///< per node
  std::vector<double> distance_;   ///< per node: what it would cost to join, delay counted from the root
  std::vector<double> delay_;      ///< per node, from the root
  std::vector<double> us_;         ///< per node, the same
  std::vector<int> last_arc_;
  std::vector<char> in_tree_;
};

/// The transfers of a tree that is given by its arcs.
OutTree tree_of_arcs(const Topology& topology, const CopyGraph& graph, const std::vector<int>& arcs);

}  // namespace rondo
