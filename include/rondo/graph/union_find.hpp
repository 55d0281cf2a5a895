#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace rondo {

/// Sets that grow together.
class UnionFind {
 public:
  explicit UnionFind(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  /// Per element the number of its set; sets are numbered by their first members.
  std::vector<int> numbered() {
    std::vector<int> number(parent_.size(), -1);
    int next = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      int& first = number[find(i)];
      if (first < 0) first = next++;
      number[i] = first;
    }
    return number;
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace rondo
