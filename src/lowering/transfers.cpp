#include "transfers.hpp"

#include <fmt/format.h>

#include <functional>
#include <queue>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo::lowering {
namespace {

/// Orders by start with causes first, and renumbers the causes.
std::vector<Delivery> in_causal_order(const std::vector<Delivery>& deliveries) {
  std::vector<std::vector<int>> caused(deliveries.size());
  using Key = std::tuple<double, double, ChunkId, GpuId, int>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  const auto push = [&](int d) {
    const Delivery& delivery = deliveries[index(d)];
    ready.push({delivery.start_us, delivery.arrival_us, delivery.chunk, delivery.dst, d});
  };
  for (int d = 0; d < static_cast<int>(deliveries.size()); ++d) {
    const int cause = deliveries[index(d)].cause;
    if (cause < 0) {
      push(d);
    } else {
      caused[index(cause)].push_back(d);
    }
  }
  std::vector<Delivery> ordered;
  std::vector<int> position(deliveries.size(), -1);
  while (!ready.empty()) {
    const int d = std::get<4>(ready.top());
    ready.pop();
    position[index(d)] = static_cast<int>(ordered.size());
    ordered.push_back(deliveries[index(d)]);
    if (int& cause = ordered.back().cause; cause >= 0) cause = position[index(cause)];
    for (const int next : caused[index(d)]) push(next);
  }
  return ordered;
}

}  // namespace

std::vector<Delivery> needed_in_order(const Demand& demand, std::vector<Delivery> deliveries) {
  find_causes(demand, deliveries);
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
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
