#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace rondo {

/// Times between which nothing begins or ends.
class Stretches {
 public:
  void add(int from, int to) { times_.insert({from, to}); }
  /// As add(), of the part that lies between the first time and the last one so far.
  void add_within(int from, int to) {
    if (times_.empty()) return;
    const auto [first, last] = std::pair(*times_.begin(), *times_.rbegin());
    add(std::clamp(from, first, last), std::clamp(to, first, last));
  }
  void close() { begins_.assign(times_.begin(), times_.end()); }
  /// The last time is the end of the last stretch.
  std::size_t count() const { return begins_.empty() ? 0 : begins_.size() - 1; }
  int begin(std::size_t i) const { return begins_[i]; }
  int length(std::size_t i) const { return begins_[i + 1] - begins_[i]; }
  /// The stretch that begins at `time`.
  std::size_t at(int time) const {
    return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), time) - begins_.begin());
  }

 private:
  std::set<int> times_;
  std::vector<int> begins_;
};

}  // namespace rondo
