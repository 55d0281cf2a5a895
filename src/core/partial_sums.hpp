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

/// Of how many sources a partial sum is.
struct SumSizes {
  std::vector<int> carried;  ///< per delivery: what it brings
  std::vector<int> after;    ///< per delivery: what its destination holds after it
};

/// From `cause` and `before`; 0 for what is only copied, and nothing added for what rests on itself.
SumSizes sizes_of_sums(const Demand& demand, std::span<const Delivery> deliveries);

}  // namespace rondo
