#pragma once

#include <algorithm>
#include <vector>

namespace rondo {

/// Sorts it, and leaves each value once.
template <class T>
void make_set(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace rondo
