#pragma once

#include <cstddef>
#include <vector>

#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {

/// Where the buffers of each GPU are at chunks of `chunk_bytes`; in place input and output overlap. Throws
/// Error(bad_data) where the numbers of chunks do not fit the collective.
std::vector<Memory> memory_layout(const Plan& plan, Collective collective, std::size_t chunk_bytes);

}  // namespace rondo::mscclpp
