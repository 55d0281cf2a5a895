#include "in_turn.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {

std::vector<Send> in_turn(const Topology& topology, std::vector<Send> first,
                          const std::vector<Send>& second) {
  double end_us = 0;
  for (const Send& send : first) end_us = std::max(end_us, send.arrival_us);
  const std::int32_t next_number = next_transfer_number(first);
  for (Send send : second) {
    const double latency_us = topology.link(send.link).latency_us;
    send.end_us = end_us + send.end_us;
    send.start_us += end_us;
    send.arrival_us = send.end_us + latency_us;
    if (send.transfer != kNoTransfer) send.transfer += next_number;
    first.push_back(send);
  }
  Schedule appended{std::move(first)};
  canonicalise(appended);
  return std::move(appended.sends);
}

std::optional<Schedule> drawn_together(const Topology& topology, const Demand& demand,
                                       const std::vector<Send>& sends) {
  Schedule earlier = retimed({topology, sends}, topology, demand);
  const ReplayResult replayed = replay(topology, demand, earlier.sends);
  if (!replayed.valid()) return std::nullopt;
  earlier.finish_us = replayed.finish_us;
  return earlier;
}

}  // namespace rondo
