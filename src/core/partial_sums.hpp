#pragma once

#include <span>
#include <vector>

#include "rondo/core/transfers.hpp"

/// The part of transfers.hpp that is about sums.
namespace rondo {

inline bool is_sum(const Demand& demand, ChunkId chunk) {
  return demand.contribution(chunk).reduce;
}

/// Sets `cause` and `before` of the deliveries of sums, which are -1.
void find_causes_of_sums(const Demand& demand, std::vector<Delivery>& deliveries);

/// Per delivery of a sum how many sources' data its destination holds after it, from `cause` and `before`; 0
/// for others and for those that rest on themselves.
std::vector<int> sizes_after(const Demand& demand, std::span<const Delivery> deliveries);

}  // namespace rondo
