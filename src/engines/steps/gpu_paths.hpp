#pragma once

#include <map>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {

/// Paths between GPUs: the hop that joins them or, where none does, the fastest one over other GPUs.
class GpuPaths {
 public:
  /// `bytes`: of a chunk.
  GpuPaths(const HopTable& hops, double bytes);

  /// Hops one after another; of equally fast ones between two GPUs the `turn`-th, around. Throws
  /// Error(unavailable) where there is no path.
  std::vector<int> between(GpuId from, GpuId to, std::size_t turn);

 private:
  int one_of(GpuId from, GpuId to, std::size_t turn) const;

  const HopTable& hops_;
  std::vector<std::map<int, std::vector<int>>> fastest_;  ///< per source, by destination
  ShortestPathSearch search_;
  std::map<int, ShortestPaths> paths_;  ///< by source
};

}  // namespace rondo
