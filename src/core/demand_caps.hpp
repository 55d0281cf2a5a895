#pragma once

#include <cstddef>

namespace rondo {

/// `deliveries`: destinations, summed over contributions. Throws Error(unavailable) for more chunks, or more
/// chunks x destinations, than demands may have.
void check_caps(std::size_t contributions, std::size_t deliveries, int chunks);

}  // namespace rondo
