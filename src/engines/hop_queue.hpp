#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace rondo {

/// What a hop could carry, the smallest key first. Keys only grow: an entry whose key has grown since is put
/// back when it comes up.
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
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
  }

 private:
  std::vector<Entry> heap_;
};

}  // namespace rondo
