#include "transfers.hpp"

#include <fmt/format.h>

#include <functional>
#include <queue>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo::lowering {
namespace {

/// Orders by start with all that a transfer carries on before it, and renumbers the causes.
std::vector<Delivery> in_causal_order(const std::vector<Delivery>& deliveries) {
  std::vector<std::vector<int>> caused(deliveries.size());
  std::vector<int> causes_left(deliveries.size(), 0);
  using Key = std::tuple<double, double, ChunkId, GpuId, int>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  const auto push = [&](int d) {
    const Delivery& delivery = deliveries[index(d)];
    ready.push({delivery.start_us, delivery.arrival_us, delivery.chunk, delivery.dst, d});
  };
  for (int d = 0; d < static_cast<int>(deliveries.size()); ++d) {
    for (int c = deliveries[index(d)].cause; c >= 0; c = deliveries[index(c)].before) {
      caused[index(c)].push_back(d);
      ++causes_left[index(d)];
    }
    if (causes_left[index(d)] == 0) push(d);
  }
  std::vector<Delivery> ordered;
  std::vector<int> position(deliveries.size(), -1);
  while (!ready.empty()) {
    const int d = std::get<4>(ready.top());
    ready.pop();
    position[index(d)] = static_cast<int>(ordered.size());
    ordered.push_back(deliveries[index(d)]);
    for (const int next : caused[index(d)]) {
      if (--causes_left[index(next)] == 0) push(next);
    }
  }
  for (Delivery& delivery : ordered) {
    if (delivery.cause >= 0) delivery.cause = position[index(delivery.cause)];
    if (delivery.before >= 0) delivery.before = position[index(delivery.before)];
  }
  return ordered;
}

}  // namespace

std::vector<Delivery> needed_in_order(const Demand& demand, std::vector<Delivery> deliveries,
                                      const std::vector<char>& elsewhere) {
  find_causes(demand, deliveries);
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    if (!elsewhere.empty() && elsewhere[c]) continue;
    for (const GpuId destination : demand.destinations(ChunkId{c})) {
      if (first(ChunkId{c}, destination) >= 0) continue;
      throw Error(ExitCode::bad_data, fmt::format("chunk {} never reaches GPU {}: the schedule is not valid",
                                                  c, destination.value));
    }
  }
  keep_marked(deliveries, needed_deliveries(demand, deliveries));
  return in_causal_order(deliveries);
}

}  // namespace rondo::lowering
