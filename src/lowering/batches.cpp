#include "batches.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/make_set.hpp"
#include "rondo/core/replay.hpp"
#include "sums.hpp"

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
        sums_(deliveries, layout),
        next_(deliveries.size(), -1),
        first_use_us_(deliveries.size(), std::numeric_limits<double>::infinity()),
        last_cause_(deliveries.size(), -1),
        batch_of_(deliveries.size(), -1) {
    std::map<std::pair<GpuId, GpuId>, int> latest;
    for (int t = 0; t < static_cast<int>(deliveries.size()); ++t) {
      const Delivery& delivery = at(t);
      const auto [entry, is_first] = latest.try_emplace({delivery.src, delivery.dst}, t);
      if (!is_first) next_[index(entry->second)] = t;
      entry->second = t;
      for (int c = delivery.cause; c >= 0; c = at(c).before) {
        use(c, delivery.start_us);
        last_cause_[index(t)] = std::max(last_cause_[index(t)], c);
      }
      // The first to arrive writes what the others add to.
      const int before = delivery.before;
      if (before >= 0 && at(before).before < 0) use(before, delivery.arrival_us);
    }
  }

  Traffic run() {
    for (int t = 0; t < static_cast<int>(deliveries_.size()); ++t) {
      if (batch_of_[index(t)] < 0) start_batch(t);
    }
    traffic_.order = sums_.order(batch_of_);
    for (const auto& [transfers, batches] : leaving_together_) {
      if (batches.size() < 2) continue;
      for (const int batch : batches) traffic_.batches[index(batch)].multicast = batches.front();
    }
    return std::move(traffic_);
  }

 private:
  const Delivery& at(int t) const { return deliveries_[index(t)]; }
  int chunk(int t) const { return at(t).chunk.value; }
  void use(int t, double time_us) { first_use_us_[index(t)] = std::min(first_use_us_[index(t)], time_us); }

  /// Where `gpu` has the chunk once some of it has arrived; open where nothing has been placed yet.
  Spot gathered_at(int chunk, GpuId gpu) const {
    if (const auto output = layout_.wanted_at(chunk, gpu.value)) return {.range = *output};
    const auto known = in_scratch_.find({chunk, gpu.value});
    return known == in_scratch_.end() ? Spot{.range = {.buffer = Buffer::scratch, .offset = -1}}
                                      : known->second;
  }

  /// What a transfer reads and writes.
  struct Places {
    Spot source = {};
    Spot destination = {};
    bool adds = false;
    Spot summand = {};
  };
  Places places_of(int t) const {
    const Delivery& delivery = at(t);
    Places places = {.source = delivery.cause >= 0
                                   ? gathered_at(chunk(t), delivery.src)
                                   : Spot{.range = *layout_.home(chunk(t), delivery.src.value)},
                     .destination = gathered_at(chunk(t), delivery.dst)};
    if (delivery.op != SendOp::reduce) return places;
    if (delivery.before >= 0) {
      places.adds = true;
      places.summand = places.destination;
    } else if (const auto home = layout_.home(chunk(t), delivery.dst.value)) {
      places.adds = true;
      places.summand = {.range = *home};
    }
    return places;
  }

  /// What is side by side so far; a transfer may join at either end.
  struct Run {
    std::vector<int> members = {};  ///< in the order of their places
    Places places = {};
    int count = 0;
    double arrival_us = 0;
  };

  void start_batch(int first) {
    Run run = {.members = {first},
               .places = places_of(first),
               .count = layout_.length(chunk(first)),
               .arrival_us = at(first).arrival_us};
    while (grow(run, first)) {
    }
    append(run, at(first).start_us);
  }

  /// Lets one more transfer of the connection join. Those between are sent after it instead of before, so
  /// their uses count as well.
  bool grow(Run& run, int first) const {
    double first_use_us = first_use_us_[index(first)];
    int seen = 0;
    for (int t = next_[index(first)]; t >= 0; t = next_[index(t)]) {
      const bool is_member = std::find(run.members.begin(), run.members.end(), t) != run.members.end();
      if (batch_of_[index(t)] >= 0) continue;
      if (++seen > kLookAhead) return false;
      first_use_us = std::min(first_use_us, first_use_us_[index(t)]);
      if (!not_before(first_use_us, std::max(run.arrival_us, at(t).arrival_us))) return false;
      if (is_member || !is_there(t, first) || !join(run, t)) continue;
      run.arrival_us = std::max(run.arrival_us, at(t).arrival_us);
      return true;
    }
    return false;
  }

  /// Whether the chunk is at its source, as `t` carries it, when `first` starts.
  bool is_there(int t, int first) const {
    return last_cause_[index(t)] < first &&
           (at(t).cause < 0 || not_before(at(first).start_us, at(at(t).cause).arrival_us));
  }

  bool join(Run& run, int t) const {
    const int length = layout_.length(chunk(t));
    const Places places = places_of(t);
    if (run.count + length > max_count_ || places.adds != run.places.adds ||
        !places.source.same_area(run.places.source) ||
        !places.destination.same_area(run.places.destination) ||
        (places.adds && !places.summand.same_area(run.places.summand))) {
      return false;
    }
    const auto joins = [](const Spot& spot, const Spot& beside, int shift) {
      return beside.range.offset < 0 || spot.range.offset == beside.range.offset + shift;
    };
    const auto joins_at = [&](int shift) {
      return joins(places.source, run.places.source, shift) &&
             joins(places.destination, run.places.destination, shift) &&
             (!places.adds || joins(places.summand, run.places.summand, shift));
    };
    if (joins_at(run.count)) {
      run.members.push_back(t);
    } else if (joins_at(-length)) {
      run.members.insert(run.members.begin(), t);
      run.places = places;
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
                   .from = run.places.source,
                   .to = run.places.destination,
                   .adds = run.places.adds,
                   .summand = run.places.summand,
                   .clears = true};
    const bool is_open = batch.to.range.offset < 0;
    if (is_open) {
      batch.to = {.range = {.buffer = Buffer::scratch, .offset = 0},
                  .area = static_cast<int>(traffic_.areas.size())};
      traffic_.areas.push_back(run.count);
      if (batch.adds && batch.summand.range.offset < 0) batch.summand = batch.to;
    }
    int offset = 0;
    for (const int t : run.members) {
      batch_of_[index(t)] = static_cast<int>(traffic_.batches.size());
      if (is_open) {
        Spot& spot = in_scratch_[{chunk(t), at(t).dst.value}];
        spot = batch.to;
        spot.range.offset = offset;
      }
      offset += layout_.length(chunk(t));
      batch.chunks.push_back(chunk(t));
      batch.clears = batch.clears && sums_.clears(t);
      for (const int cause : sums_.right_before(t)) batch.follows.push_back(batch_of_[index(cause)]);
    }
    if (!batch.adds) {
      std::vector<int> transfers = {batch.src};
      for (const int t : run.members) transfers.push_back(at(t).first_send);
      leaving_together_[std::move(transfers)].push_back(static_cast<int>(traffic_.batches.size()));
    }
    make_set(batch.follows);
    traffic_.batches.push_back(std::move(batch));
  }

  const std::vector<Delivery>& deliveries_;
  const Layout& layout_;
  int max_count_;
  Sums sums_;
  std::vector<int> next_;             ///< the next transfer on the same connection
  std::vector<double> first_use_us_;  ///< when the destination first needs that it has arrived
  std::vector<int> last_cause_;       ///< the latest in the list of those that it carries on
  std::vector<int> batch_of_;
  std::map<std::pair<int, int>, Spot> in_scratch_;                 ///< by chunk and GPU
  std::map<std::vector<int>, std::vector<int>> leaving_together_;  ///< batches by source and first sends
  Traffic traffic_;
};

}  // namespace

Traffic merge(const std::vector<Delivery>& deliveries, const Layout& layout, int max_count) {
  return Merger(deliveries, layout, max_count).run();
}

}  // namespace rondo::lowering
