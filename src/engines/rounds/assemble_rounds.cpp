#include "assemble_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/engines/rounds.hpp"
#include "round_plan.hpp"

namespace rondo {

Schedule assemble_rounds(const Topology& topology, const Demand& demand, const std::vector<Send>& sends) {
  Schedule schedule{pruned(topology, demand, sends)};
  // Where messages cost, transfers that meet in a switch cannot be told apart without numbers.
  if (topology.has_message_costs()) number_transfers(topology, demand, schedule.sends);
  canonicalise(schedule);
  const std::vector<Delivery> deliveries = transfers_of(topology, demand, schedule.sends).deliveries;
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c{i};
    for (const GpuId d : demand.destinations(c)) {
      if (first(c, d) < 0) {
        throw Error(ExitCode::bad_data,
                    fmt::format("the rounds bring chunk {} to GPU {} nowhere; resume the run to finish it", i,
                                d.value));
      }
      schedule.finish_us = std::max(schedule.finish_us, deliveries[index(first(c, d))].arrival_us);
    }
  }
  return schedule;
}

Schedule reassemble(const Topology& topology, const Demand& demand, const std::vector<RoundRecord>& rounds) {
  std::vector<Send> sends;
  for (const RoundRecord& round : rounds) sends.insert(sends.end(), round.sends.begin(), round.sends.end());
  return assemble_rounds(topology, demand, sends);
}

}  // namespace rondo
