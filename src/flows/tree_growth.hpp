#pragma once

#include <optional>
#include <vector>

#include "period_graph.hpp"
#include "rondo/flows/steiner_packing.hpp"

namespace rondo {

/// Grows a tree from a GPU: Dijkstra's algorithm from all GPUs of the tree at once. Some of the path from the
/// root counts as well, so that of trees that cost about the same the shallow one is taken: chunks are on
/// their way for less time.
class TreeGrowth {
 public:
  TreeGrowth(const Topology& topology, const PeriodGraph& graph);

  /// To all destinations of the block, from where it is in `period` on; data waits at GPUs, not in switches.
  /// `cost`: one an arc of a link; those that cost infinitely much are not taken. Nothing where a destination
  /// cannot be reached without them.
  std::optional<std::vector<SteinerHop>> grow(const SteinerBlock& block, std::size_t period,
                                              const std::vector<double>& cost);

 private:
  std::optional<std::size_t> nearest(const std::vector<double>& cost);
  void join(std::size_t reached, std::vector<SteinerHop>& hops);

  const Topology& topology_;
  const PeriodGraph& graph_;
  std::vector<double> distance_;
  std::vector<std::size_t> last_;
  std::vector<std::size_t> tree_;  ///< nodes at which it branches
  std::vector<char> in_tree_;      ///< per node
  std::vector<double> from_root_;  ///< per node of the tree, what its path counts for
  std::vector<char> is_wanting_;   ///< per GPU
};

}  // namespace rondo
