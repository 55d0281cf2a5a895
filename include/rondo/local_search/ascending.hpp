#pragma once

#include <vector>

namespace rondo {

/// The numbers of the keys, from the least key to the greatest; ties by number. No key is NaN.
std::vector<int> ascending(const std::vector<double>& key);

}  // namespace rondo
