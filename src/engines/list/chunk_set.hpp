#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

/// A set of chunks as bits; all sets of a schedule have the same length.
using ChunkSet = std::vector<std::uint64_t>;

inline ChunkSet no_chunks(std::size_t num_chunks) {
  return ChunkSet((num_chunks + 63) / 64, 0);
}
inline void insert(ChunkSet& set, std::size_t c) {
  set[c / 64] |= std::uint64_t{1} << (c % 64);
}
inline void erase(ChunkSet& set, std::size_t c) {
  set[c / 64] &= ~(std::uint64_t{1} << (c % 64));
}
inline bool contains(const ChunkSet& set, std::size_t c) {
  return (set[c / 64] >> (c % 64) & 1) != 0;
}

}  // namespace rondo
