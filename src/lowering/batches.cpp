#include "batches.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/replay.hpp"

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Range;

class Merger {
 public:
  Merger(const std::vector<Transfer>& transfers, const Layout& layout, int max_count)
      : transfers_(transfers),
        layout_(layout),
        max_count_(max_count),
        next_(transfers.size(), -1),
        first_use_us_(transfers.size(), std::numeric_limits<double>::infinity()),
        place_(transfers.size()) {
    std::map<std::pair<int, int>, int> latest;
    for (int t = 0; t < static_cast<int>(transfers.size()); ++t) {
      const Transfer& transfer = at(t);
      const auto [entry, is_first] = latest.try_emplace({transfer.src, transfer.dst}, t);
      if (!is_first) next_[static_cast<std::size_t>(entry->second)] = t;
      entry->second = t;
      if (transfer.parent >= 0) {
        double& use = first_use_us_[static_cast<std::size_t>(transfer.parent)];
        use = std::min(use, transfer.start_us);
      }
    }
  }

  std::vector<Batch> run() {
    for (int t = 0; t < static_cast<int>(transfers_.size()); ++t) {
      if (place_[static_cast<std::size_t>(t)].batch < 0) start_batch(t);
    }
    return std::move(batches_);
  }

 private:
  /// Where a transfer has put its chunk: `offset` counts from the beginning of the batch.
  struct Place {
    int batch = -1;
    int offset = 0;
  };
  /// Where something is, scratch counted per batch that wrote it.
  struct Spot {
    Range range;
    int batch = -1;
    bool same_area(const Spot& other) const {
      return range.buffer == other.range.buffer && batch == other.batch;
    }
  };

  const Transfer& at(int t) const { return transfers_[static_cast<std::size_t>(t)]; }

  Spot source_of(int t) const {
    const Transfer& transfer = at(t);
    if (transfer.parent < 0) return {.range = layout_.home(transfer.chunk)};
    if (const auto output = layout_.wanted_at(transfer.chunk, transfer.src)) return {.range = *output};
    const Place place = place_[static_cast<std::size_t>(transfer.parent)];
    return {.range = {.buffer = Buffer::scratch, .offset = place.offset}, .batch = place.batch};
  }

  Range destination_of(int t) const {
    return layout_.wanted_at(at(t).chunk, at(t).dst).value_or(Range{.buffer = Buffer::scratch, .offset = -1});
  }

  void start_batch(int first) {
    // Front and back of what is side by side so far; a transfer may join at either end.
    std::vector<int> members = {first};
    Spot source = source_of(first);
    Range destination = destination_of(first);
    int count = layout_.length(at(first).chunk);
    double arrival_us = at(first).arrival_us;
    double first_use_us = first_use_us_[static_cast<std::size_t>(first)];
    for (int t = next_[static_cast<std::size_t>(first)]; t >= 0; t = next_[static_cast<std::size_t>(t)]) {
      if (at(t).parent > first) break;
      const int length = layout_.length(at(t).chunk);
      arrival_us = std::max(arrival_us, at(t).arrival_us);
      first_use_us = std::min(first_use_us, first_use_us_[static_cast<std::size_t>(t)]);
      const bool delays = first_use_us < arrival_us && !times_equal(first_use_us, arrival_us);
      if (delays || count + length > max_count_) break;

      const Spot from = source_of(t);
      const Range to = destination_of(t);
      if (!from.same_area(source) || to.buffer != destination.buffer) break;
      const bool open = to.buffer == Buffer::scratch;
      const auto joins_at = [&](int shift) {
        return from.range.offset == source.range.offset + shift &&
               (open || to.offset == destination.offset + shift);
      };
      if (joins_at(count)) {
        members.push_back(t);
      } else if (joins_at(-length)) {
        members.insert(members.begin(), t);
        source = from;
        destination = to;
      } else {
        break;
      }
      count += length;
    }
    append(members, source.range, destination, count);
  }

  void append(const std::vector<int>& members, Range from, Range to, int count) {
    const Transfer& first = at(members.front());
    Batch batch = {.src = first.src,
                   .dst = first.dst,
                   .count = count,
                   .instance_stride = layout_.instance_stride(first.chunk),
                   .from = from,
                   .to = to};
    int offset = 0;
    for (const int t : members) {
      place_[static_cast<std::size_t>(t)] = {.batch = static_cast<int>(batches_.size()), .offset = offset};
      offset += layout_.length(at(t).chunk);
      batch.chunks.push_back(at(t).chunk);
      const int parent = at(t).parent;
      batch.parents.push_back(parent < 0 ? -1 : place_[static_cast<std::size_t>(parent)].batch);
    }
    batches_.push_back(std::move(batch));
  }

  const std::vector<Transfer>& transfers_;
  const Layout& layout_;
  int max_count_;
  std::vector<int> next_;             ///< the next transfer on the same connection
  std::vector<double> first_use_us_;  ///< when the destination first sends the chunk on
  std::vector<Place> place_;
  std::vector<Batch> batches_;
};

}  // namespace

std::vector<Batch> merge(const std::vector<Transfer>& transfers, const Layout& layout, int max_count) {
  return Merger(transfers, layout, max_count).run();
}

}  // namespace rondo::lowering
