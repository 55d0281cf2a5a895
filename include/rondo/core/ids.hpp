#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace rondo {

/// A number that cannot be mistaken for one of another kind. Ids are 0..n-1; -1 is "none".
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}

  /// Position in a vector that holds one element an id.
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;    ///< a GPU or a switch of the topology
using LinkId = Id<struct LinkTag>;    ///< a directed link of the topology
using GpuId = Id<struct GpuTag>;      ///< an endpoint of the collective: GPUs in node order
using ChunkId = Id<struct ChunkTag>;  ///< a unit that moves whole

}  // namespace rondo

template <class Tag>
struct std::hash<rondo::Id<Tag>> {
  std::size_t operator()(rondo::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value); }
};
