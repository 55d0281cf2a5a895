#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/topology.hpp"

/// Exact packing of spanning out-trees (Edmonds, "Edge-disjoint branchings", 1973), with the switches split
/// off before: the AllGather of greatest throughput (ForestColl, arXiv 2402.06787, sections 5.2 to 5.4).
namespace rondo {

/// A way from GPU to GPU, and how many chunks may take it.
struct TreeArc {
  GpuId src;
  GpuId dst;
  std::int64_t capacity = 0;
  std::vector<LinkId> path;  ///< through switches
};

/// A spanning out-tree that `multiplicity` chunks of its root take.
struct PackedTree {
  GpuId root;
  std::int64_t multiplicity = 0;
  std::vector<int> arcs;  ///< a parent's arc before its children's
};

struct TreePacking {
  double time_us = 0;  ///< in which the links carry all trees, latency aside
  std::vector<TreeArc> arcs;
  std::vector<PackedTree> trees;  ///< `chunks` of every root, multiplicities counted
};

/// The least time in which whole chunks of `bytes`, `chunks` of them from every GPU to all others, fit onto
/// the links, and trees that use it. Shared bandwidth is not looked at. Throws Error(unavailable) where a
/// switch has more bandwidth in one direction than in the other and cannot be split off, and for topologies
/// of more than kMaxTreeGpus GPUs.
TreePacking pack_trees(const Topology& topology, int chunks, double bytes);
inline constexpr std::size_t kMaxTreeGpus = 64;

}  // namespace rondo
