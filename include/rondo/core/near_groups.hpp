#pragma once

#include <optional>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/ids.hpp"

namespace rondo {

/// More GPUs than these are not put in order.
inline constexpr std::size_t kMostOrdered = 128;

/// `members` in an order in which every radices[0] that follow one another are near each other, then every
/// radices[1] such groups, and so on: of all groups that hops join, the one with the most to lose takes those
/// nearest to it, by how long a message of `bytes` takes to each of their members. The radices multiply to
/// the number of members. Nothing where hops do not join groups so, or there are more than kMostOrdered.
std::optional<std::vector<GpuId>> ordered_by_nearness(const HopTable& hops, const std::vector<GpuId>& members,
                                                      const std::vector<int>& radices, double bytes);

}  // namespace rondo
