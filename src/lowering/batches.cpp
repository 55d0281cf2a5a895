#include "batches.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/replay.hpp"

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Range;

/// Transfers of a connection that are looked at from one on.
constexpr int kLookAhead = 256;

bool not_before(double a_us, double b_us) {
  return a_us >= b_us || times_equal(a_us, b_us);
}

class Merger {
 public:
  Merger(const std::vector<Delivery>& deliveries, const Layout& layout, int max_count)
      : deliveries_(deliveries),
        layout_(layout),
        max_count_(max_count),
        next_(deliveries.size(), -1),
        first_use_us_(deliveries.size(), std::numeric_limits<double>::infinity()),
        place_(deliveries.size()) {
    std::map<std::pair<GpuId, GpuId>, int> latest;
    for (int t = 0; t < static_cast<int>(deliveries.size()); ++t) {
      const Delivery& delivery = at(t);
      const auto [entry, is_first] = latest.try_emplace({delivery.src, delivery.dst}, t);
      if (!is_first) next_[static_cast<std::size_t>(entry->second)] = t;
      entry->second = t;
      if (delivery.cause >= 0) {
        double& use = first_use_us_[static_cast<std::size_t>(delivery.cause)];
        use = std::min(use, delivery.start_us);
      }
    }
  }

  std::vector<Batch> run() {
    for (int t = 0; t < static_cast<int>(deliveries_.size()); ++t) {
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

  const Delivery& at(int t) const { return deliveries_[static_cast<std::size_t>(t)]; }
  int chunk(int t) const { return at(t).chunk.value; }

  Spot source_of(int t) const {
    const Delivery& delivery = at(t);
    if (delivery.cause < 0) return {.range = layout_.home(chunk(t))};
    if (const auto output = layout_.wanted_at(chunk(t), delivery.src.value)) return {.range = *output};
    const Place place = place_[static_cast<std::size_t>(delivery.cause)];
    return {.range = {.buffer = Buffer::scratch, .offset = place.offset}, .batch = place.batch};
  }

  Range destination_of(int t) const {
    return layout_.wanted_at(chunk(t), at(t).dst.value)
        .value_or(Range{.buffer = Buffer::scratch, .offset = -1});
  }

  /// What is side by side so far; a transfer may join at either end.
  struct Run {
    std::vector<int> members = {};  ///< in the order of their places
    Spot source = {};
    Range destination = {};
    int count = 0;
    double arrival_us = 0;
  };

  void start_batch(int first) {
    Run run = {.members = {first},
               .source = source_of(first),
               .destination = destination_of(first),
               .count = layout_.length(chunk(first)),
               .arrival_us = at(first).arrival_us};
    while (grow(run, first)) {
    }
    append(run, at(first).start_us);
  }

  /// Lets one more transfer of the connection join. Those between are sent after it instead of before, so
  /// their uses count as well.
  bool grow(Run& run, int first) const {
    double first_use_us = first_use_us_[static_cast<std::size_t>(first)];
    int seen = 0;
    for (int t = next_[static_cast<std::size_t>(first)]; t >= 0; t = next_[static_cast<std::size_t>(t)]) {
      const bool is_member = std::find(run.members.begin(), run.members.end(), t) != run.members.end();
      if (place_[static_cast<std::size_t>(t)].batch >= 0) continue;
      if (++seen > kLookAhead) return false;
      first_use_us = std::min(first_use_us, first_use_us_[static_cast<std::size_t>(t)]);
      if (!not_before(first_use_us, std::max(run.arrival_us, at(t).arrival_us))) return false;
      if (is_member || !is_there(at(t), first) || !join(run, t)) continue;
      run.arrival_us = std::max(run.arrival_us, at(t).arrival_us);
      return true;
    }
    return false;
  }

  /// Whether the chunk is at its source when `first` starts.
  bool is_there(const Delivery& delivery, int first) const {
    return delivery.cause < first &&
           (delivery.cause < 0 || not_before(at(first).start_us, at(delivery.cause).arrival_us));
  }

  bool join(Run& run, int t) const {
    const int length = layout_.length(chunk(t));
    const Spot from = source_of(t);
    const Range to = destination_of(t);
    if (run.count + length > max_count_ || !from.same_area(run.source) ||
        to.buffer != run.destination.buffer) {
      return false;
    }
    const bool open = to.buffer == Buffer::scratch;
    const auto joins_at = [&](int shift) {
      return from.range.offset == run.source.range.offset + shift &&
             (open || to.offset == run.destination.offset + shift);
    };
    if (joins_at(run.count)) {
      run.members.push_back(t);
    } else if (joins_at(-length)) {
      run.members.insert(run.members.begin(), t);
      run.source = from;
      run.destination = to;
    } else {
      return false;
    }
    run.count += length;
    return true;
  }

  void append(const Run& run, double start_us) {
    const Delivery& first = at(run.members.front());
    Batch batch = {.src = first.src.value,
                   .dst = first.dst.value,
                   .count = run.count,
                   .start_us = start_us,
                   .arrival_us = run.arrival_us,
                   .instance_stride = layout_.instance_stride(chunk(run.members.front())),
                   .from = run.source.range,
                   .to = run.destination};
    int offset = 0;
    for (const int t : run.members) {
      place_[static_cast<std::size_t>(t)] = {.batch = static_cast<int>(batches_.size()), .offset = offset};
      offset += layout_.length(chunk(t));
      batch.chunks.push_back(chunk(t));
      const int parent = at(t).cause;
      batch.parents.push_back(parent < 0 ? -1 : place_[static_cast<std::size_t>(parent)].batch);
    }
    batches_.push_back(std::move(batch));
  }

  const std::vector<Delivery>& deliveries_;
  const Layout& layout_;
  int max_count_;
  std::vector<int> next_;             ///< the next transfer on the same connection
  std::vector<double> first_use_us_;  ///< when the destination first sends the chunk on
  std::vector<Place> place_;
  std::vector<Batch> batches_;
};

}  // namespace

std::vector<Batch> merge(const std::vector<Delivery>& deliveries, const Layout& layout, int max_count) {
  return Merger(deliveries, layout, max_count).run();
}

}  // namespace rondo::lowering
