#include "route_justification.hpp"

#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"

namespace rondo {

RouteStarts justified(RouteStarts starts, const Topology& topology, const std::vector<Hop>& hops,
                      const Demand& demand, const RoutedChunks& routed, int concurrency,
                      const Deadline& deadline) {
  PlanSpace space{&topology, demand};
  space.concurrency = concurrency;
  space.deadline = &deadline;
  space.into.resize(topology.num_gpus());
  for (const Hop& hop : hops) space.add(hop);

  TransferPlan plan;
  std::vector<int> last(demand.num_chunks(), -1);  // per chunk: its transfer before
  for (const RouteStart& start : starts.starts) {
    const auto chunk = index(start.chunk);
    const Route& route = routed.routes[index(routed.route_of_chunk[chunk])];
    plan.transfers.push_back(
        {ChunkId{start.chunk}, route.hops[start.position], last[chunk], -1, start.start_us});
    last[chunk] = static_cast<int>(plan.transfers.size()) - 1;
  }
  plan.quality.finish_us = starts.finish_us;
  try {
    plan = placed_forward(plan, space, latest_starts(plan, space));
  } catch (const TimeIsOver&) {
    return starts;
  }
  if (plan.quality.finish_us >= starts.finish_us) return starts;

  RouteStarts again{{}, plan.quality.finish_us};
  std::vector<std::size_t> position(demand.num_chunks(), 0);
  for (const PlannedTransfer& t : plan.transfers)
    again.starts.push_back({t.chunk.value, position[t.chunk.index()]++, t.start_us});
  return again;
}

}  // namespace rondo
