#pragma once

#include <cstddef>

#include "rondo/core/ids.hpp"

/// Which chunks of a schedule a rank holds the sends of.
namespace rondo {

/// The chunks first, first + 1, ..., end - 1.
struct ChunkRange {
  std::size_t first = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - first; }
  bool contains(ChunkId c) const { return c.valid() && c.index() >= first && c.index() < end; }
};

/// The part of one of `ranks`: nearly equal ones, in order.
inline ChunkRange chunks_of_rank(std::size_t num_chunks, int rank, int ranks) {
  const auto at = [&](int r) {
    return num_chunks * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks);
  };
  return {at(rank), at(rank + 1)};
}

/// Whose part a chunk is in; the last rank's where there is no such chunk.
inline int rank_of_chunk(ChunkId c, std::size_t num_chunks, int ranks) {
  if (!c.valid() || c.index() >= num_chunks) return ranks - 1;
  const std::size_t count = static_cast<std::size_t>(ranks);
  return static_cast<int>((count * (c.index() + 1) - 1) / num_chunks);
}

}  // namespace rondo
