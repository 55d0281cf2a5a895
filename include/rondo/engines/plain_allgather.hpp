#pragma once

#include "rondo/model/formulation.hpp"

namespace rondo {

/// Whether the instance is what the engines `queue` and `trees` are for: an AllGather in which every GPU has
/// one contribution of equal size for all others, ready at once, on a topology without shared bandwidth.
bool is_plain_allgather(const Instance& instance);

}  // namespace rondo
