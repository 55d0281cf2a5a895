#pragma once

#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Collective. Sends `to_each[r]` to rank r, this one included, and returns what came from each rank. All
/// that one rank sends, or receives, is at most 2^31 - 1 bytes. Throws Error(internal) where ranks cannot
/// send to one another.
std::vector<Bytes> all_to_all(const Communicator& communicator, const std::vector<Bytes>& to_each);

}  // namespace rondo
