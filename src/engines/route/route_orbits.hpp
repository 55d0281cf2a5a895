#pragma once

#include <numeric>
#include <vector>

#include "route_graph.hpp"

namespace rondo {

/// Which choices the turns of a sketch make one: of (chunk, way) where both ends are in one group, and of
/// (chunk, GPU).
class RouteOrbits {
 public:
  /// Throws Error(bad_data) where a turn takes the demand to another.
  RouteOrbits(const RouteGraph& graph, const Demand& demand);

  std::size_t of_way(ChunkId c, int w) const {
    return root(c.index() * num_ways_ + static_cast<std::size_t>(w));
  }
  std::size_t of_gpu(ChunkId c, GpuId g) const {
    return root(first_gpu_ + c.index() * num_gpus_ + g.index());
  }
  /// Of ways alone, as peers count.
  std::size_t of_peers(int w) const { return root(first_pair_ + static_cast<std::size_t>(w)); }

  /// Image under the i-th turn; -1: no way joins the images.
  int image_of_way(std::size_t turn, int w) const { return way_image_[turn][static_cast<std::size_t>(w)]; }
  ChunkId image_of_chunk(std::size_t turn, ChunkId c) const { return chunk_image_[turn][c.index()]; }
  std::size_t num_turns() const { return chunk_image_.size(); }

 private:
  std::size_t root(std::size_t x) const {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void unite(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

  std::size_t num_ways_;
  std::size_t num_gpus_;
  std::size_t first_gpu_;
  std::size_t first_pair_;
  mutable std::vector<std::size_t> parent_;
  std::vector<std::vector<int>> way_image_;
  std::vector<std::vector<ChunkId>> chunk_image_;
};

}  // namespace rondo
