#include "partial_sums.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "continued_sends.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

/// How many sources' data `gpu` holds of the chunk at first.
int size_at_first(const Demand& demand, ChunkId chunk, GpuId gpu) {
  const Contribution& sum = demand.contribution(chunk);
  for (const HeldSum& held : sum.held) {
    if (held.gpu == gpu) return static_cast<int>(held.sources.size());
  }
  return std::ranges::binary_search(sum.sources, gpu) ? 1 : 0;
}

/// Sizes of partial sums, each from what it rests on.
class Sizes {
 public:
  Sizes(const Demand& demand, std::span<const Delivery> deliveries)
      : demand_(demand),
        deliveries_(deliveries),
        state_(deliveries.size(), State::unseen),
        sizes_{std::vector<int>(deliveries.size(), 0), std::vector<int>(deliveries.size(), 0)} {}

  SumSizes all() && {
    for (int d = 0; d < static_cast<int>(deliveries_.size()); ++d) {
      if (is_sum(demand_, at(d).chunk)) find(d);
    }
    return std::move(sizes_);
  }

 private:
  enum class State : char { unseen, open, known };
  const Delivery& at(int d) const { return deliveries_[index(d)]; }

  /// Depth first, as chains may be long; what rests on itself stays 0.
  void find(int last) {
    std::vector<int> stack = {last};
    while (!stack.empty()) {
      const int d = stack.back();
      State& state = state_[index(d)];
      if (state == State::unseen) {
        state = State::open;
        for (const int other : {at(d).cause, at(d).before}) {
          if (other >= 0 && state_[index(other)] == State::unseen) stack.push_back(other);
        }
        continue;
      }
      stack.pop_back();
      if (state == State::known) continue;
      state = State::known;
      const int carried = size_with(at(d).cause, at(d).src, d);
      sizes_.carried[index(d)] = carried;
      sizes_.after[index(d)] =
          at(d).op == SendOp::reduce ? carried + size_with(at(d).before, at(d).dst, d) : carried;
    }
  }

  int size_with(int arrival, GpuId gpu, int d) const {
    return arrival >= 0 ? sizes_.after[index(arrival)] : size_at_first(demand_, at(d).chunk, gpu);
  }

  const Demand& demand_;
  std::span<const Delivery> deliveries_;
  std::vector<State> state_;
  SumSizes sizes_;
};

/// The arrivals of sums, by chunk and GPU, in the order in which they count: by time, of those at one time
/// copies first.
std::vector<int> in_order_of_arrival(const Demand& demand, std::span<const Delivery> deliveries) {
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(deliveries.size()); ++d) {
    if (is_sum(demand, deliveries[index(d)].chunk)) order.push_back(d);
  }
  const auto place = [&](int d) { return std::tuple(deliveries[index(d)].chunk, deliveries[index(d)].dst); };
  const auto time = [&](int d) { return deliveries[index(d)].arrival_us; };
  std::ranges::sort(order, {}, [&](int d) { return std::tuple(place(d), time(d), d); });
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](int d) {
      return place(d) != place(*first) || !times_equal(time(d), time(*first));
    });
    std::stable_partition(first, last, [&](int d) { return deliveries[index(d)].op == SendOp::copy; });
    first = last;
  }
  return order;
}

}  // namespace

SumSizes sizes_of_sums(const Demand& demand, std::span<const Delivery> deliveries) {
  return Sizes(demand, deliveries).all();
}

namespace {

/// One of the two figures, 1 for what is only copied.
std::vector<int> sizes(const Demand& demand, std::span<const Delivery> deliveries,
                       std::vector<int> SumSizes::*figure) {
  if (!demand.has_several_sources()) return std::vector<int>(deliveries.size(), 1);
  std::vector<int> all = sizes_of_sums(demand, deliveries).*figure;
  for (std::size_t d = 0; d < deliveries.size(); ++d) {
    if (!is_sum(demand, deliveries[d].chunk)) all[d] = 1;
  }
  return all;
}

}  // namespace

std::vector<int> sources_carried(const Demand& demand, std::span<const Delivery> deliveries) {
  return sizes(demand, deliveries, &SumSizes::carried);
}
std::vector<int> sources_held(const Demand& demand, std::span<const Delivery> deliveries) {
  return sizes(demand, deliveries, &SumSizes::after);
}

void find_causes_of_sums(const Demand& demand, std::vector<Delivery>& deliveries) {
  const std::vector<int> arrivals = in_order_of_arrival(demand, deliveries);
  const auto place = [&](int d) { return std::tuple(deliveries[index(d)].chunk, deliveries[index(d)].dst); };
  for (Delivery& delivery : deliveries) {
    if (!is_sum(demand, delivery.chunk)) continue;
    const std::tuple at(delivery.chunk, delivery.src);
    const auto first = std::ranges::lower_bound(arrivals, at, {}, place);
    const auto last = std::ranges::upper_bound(arrivals, at, {}, place);
    const auto later = std::partition_point(
        first, last, [&](int d) { return not_after(deliveries[index(d)].arrival_us, delivery.start_us); });
    if (later != first) delivery.cause = *(later - 1);
  }
  std::vector<int> before(deliveries.size(), -1);  // the arrival that came before, whatever this one does
  for (std::size_t k = 1; k < arrivals.size(); ++k) {
    if (place(arrivals[k]) != place(arrivals[k - 1])) continue;
    before[index(arrivals[k])] = arrivals[k - 1];
    Delivery& arrival = deliveries[index(arrivals[k])];
    if (arrival.op == SendOp::reduce) arrival.before = arrivals[k - 1];
  }

  // Copies that bring nothing new are left out of the chains.
  const std::vector<int> sizes = sizes_of_sums(demand, deliveries).after;
  std::vector<int> in_place_of(deliveries.size());
  std::iota(in_place_of.begin(), in_place_of.end(), 0);
  for (const int d : arrivals) {
    const Delivery& arrival = deliveries[index(d)];
    const int last = before[index(d)] < 0 ? -1 : in_place_of[index(before[index(d)])];
    const int size = last >= 0 ? sizes[index(last)] : size_at_first(demand, arrival.chunk, arrival.dst);
    if (arrival.op == SendOp::copy && sizes[index(d)] == size) in_place_of[index(d)] = last;
  }
  const auto counted = [&](int d) { return d < 0 ? -1 : in_place_of[index(d)]; };
  for (const int d : arrivals) {
    deliveries[index(d)].cause = counted(deliveries[index(d)].cause);
    deliveries[index(d)].before = counted(deliveries[index(d)].before);
  }
}

}  // namespace rondo
