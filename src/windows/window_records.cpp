#include "window_records.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rondo {

RoundPart part_of(const Window& window, const WindowAnswer& answer, const PartOutcome& outcome) {
  return {.name = fmt::format("{} transfers from {:.6g} us", window.members.size(), window.from_us),
          .outcome = answer.outcome,
          .rank = outcome.rank,
          .seconds = outcome.seconds,
          .columns = answer.columns,
          .rows = answer.rows,
          .nodes = answer.nodes,
          .iterations = answer.iterations,
          .objective_before = 0,
          .objective_after = answer.lambda_us};
}

RoundPart part_of_replanting(std::size_t transfers, std::int64_t work_of_each, double seconds,
                             double gain_us) {
  return {.name = "replanting",
          .outcome = gain_us > 0 ? "earlier" : "not earlier",
          .seconds = seconds,
          .rows = static_cast<std::int64_t>(transfers),
          .iterations = work_of_each,
          .objective_before = 0,
          .objective_after = gain_us};
}

double work_of(const RoundPart& part) {
  return static_cast<double>(part.rows) * static_cast<double>(part.iterations + part.columns);
}

RoundState state_at_begin(const Demand& demand) {
  RoundState state;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId d : demand.destinations(ChunkId{c})) state.unmet.push_back({ChunkId{c}, d});
  }
  std::ranges::sort(state.unmet);
  return state;
}

RoundState state_at_end(const Schedule& schedule, const Demand& demand, PlanSpace fabric) {
  RoundState state{.time_us = schedule.finish_us};
  if (const auto plan = plan_of(schedule, fabric)) {
    for (const PlannedTransfer& t : plan->transfers) {
      state.buffers.push_back(
          {t.chunk, fabric.hop(t).dst, std::min(fabric.arrival_us(t), schedule.finish_us)});
    }
  } else {
    for (const UnmetDemand& wanted : state_at_begin(demand).unmet)
      state.buffers.push_back({wanted.chunk, wanted.gpu, schedule.finish_us});
  }
  std::ranges::sort(state.buffers);
  return state;
}

}  // namespace rondo
