#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "spanning_packing.hpp"

namespace rondo {

/// What finds the cheapest tree at given prices.
class TreeMaker {
 public:
  virtual ~TreeMaker() = default;
  /// `price`: per us of each of LinkRows; `salt` settles ties. `cost` becomes a lower bound on that of any
  /// tree, which the tree's own exceeds by a thousandth at most: of trees that near, shallow ones. Throws
  /// Error(unavailable) where there is none.
  virtual WeightedTree cheapest(const std::vector<double>& price, std::uint64_t salt, double& cost) = 0;
  /// Whether trees are the cheapest ones; else `cost` is the tree's own and no bound.
  virtual bool is_exact() const { return true; }
};

/// Spanning trees each edge of which is used both ways.
std::unique_ptr<TreeMaker> make_spanning_trees(const Topology& topology, const std::vector<GpuId>& members,
                                               LinkUse use);

/// Pairs of trees with one root: one along which sums come in and one along which results go out.
std::unique_ptr<TreeMaker> make_rooted_trees(const Topology& topology, const std::vector<GpuId>& members,
                                             LinkUse use);

/// Trees over the members and, where that is cheaper, GPUs that are none, each edge used both ways. Members
/// are named by the numbers of their GPUs. From each member the others are joined, nearest first (Takahashi
/// and Matsuyama, 1980); the cheapest of these trees.
std::unique_ptr<TreeMaker> make_relay_trees(const Topology& topology, const std::vector<GpuId>& members,
                                            LinkUse use);

}  // namespace rondo
