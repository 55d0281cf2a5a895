#pragma once

#include <cstddef>
#include <vector>

namespace rondo {

/// Per chunk which of several shares it belongs to: each as often as it says, and as evenly spaced as can be.
/// The shares sum to 1.
std::vector<std::size_t> deal(const std::vector<double>& shares, std::size_t num_chunks);

}  // namespace rondo
