#pragma once

#include "rondo/core/collective.hpp"

namespace rondo {

/// Every contribution is a sum of the same GPUs for the same GPUs, and nothing is summed yet.
bool is_plain_all_reduce(const Demand& demand);

/// Every GPU that has something, or wants it, has it for all others of them or wants it of all who have:
/// AllGather, Broadcast.
bool is_plain_spreading(const Demand& demand);

/// All GPUs that have something or want it, ascending.
std::vector<GpuId> members_of(const Demand& demand);

}  // namespace rondo
