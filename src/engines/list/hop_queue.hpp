#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

namespace rondo {

/// What a hop could carry, the smallest key first. Keys only grow: an entry whose key has grown since is put
/// back when it comes up. A heap in which each has four below it, next to each other in memory.
class HopQueue {
 public:
  struct Entry {
    std::uint64_t key;
    std::uint32_t chunk;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Entry& first() const { return heap_.front(); }
  void push(Entry entry) {
    std::size_t at = heap_.size();
    heap_.push_back(entry);
    for (; at > 0 && entry < heap_[(at - 1) / kWidth]; at = (at - 1) / kWidth)
      heap_[at] = heap_[(at - 1) / kWidth];
    heap_[at] = entry;
  }
  void pop() {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) replace_first(last);
  }
  /// The first goes, `entry` comes.
  void replace_first(Entry entry) {
    std::size_t at = 0;
    for (std::size_t below = 1; below < heap_.size(); below = kWidth * at + 1) {
      const std::size_t end = std::min(below + kWidth, heap_.size());
      std::size_t least = below;
      for (std::size_t i = below + 1; i < end; ++i) least = heap_[i] < heap_[least] ? i : least;
      if (!(heap_[least] < entry)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = entry;
  }
  /// Into the cache what replace_first() and push() look at.
  void fetch_ahead() const {
    for (std::size_t i = 0; i <= kWidth && i < heap_.size(); i += kWidth) __builtin_prefetch(&heap_[i]);
  }
  void fetch_end() const {
    if (!heap_.empty()) __builtin_prefetch(&heap_.back());
  }

 private:
  static constexpr std::size_t kWidth = 4;
  std::vector<Entry> heap_;
};

}  // namespace rondo
