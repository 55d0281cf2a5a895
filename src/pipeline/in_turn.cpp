#include "in_turn.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "replayed.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Of the more chunks that one of two schedules has, how many times as many both may have together, unless
/// these are many transfers.
constexpr int kMostTimesAsMany = 4;
constexpr double kMostTransfersToMeet = 4e5;

}  // namespace

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

std::vector<Send> sliced(const std::vector<Send>& sends, int slices) {
  const std::int32_t numbers = next_transfer_number(sends);
  std::vector<Send> all;
  for (int slice = 0; slice < slices; ++slice) {
    for (Send send : sends) {
      send.chunk = ChunkId(send.chunk.value * slices + slice);
      if (send.transfer != kNoTransfer) send.transfer += numbers * slice;
      all.push_back(send);
    }
  }
  return all;
}

std::vector<Send> cut_finer(const std::vector<Send>& sends, int slices) {
  if (slices == 1) return sends;
  std::vector<Send> all = sliced(sends, slices);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Send& send = all[i];
    const auto before = static_cast<double>(i / sends.size());
    const double each_us = (send.end_us - send.start_us) / slices;
    const double latency_us = send.arrival_us - send.end_us;
    send.start_us += before * each_us;
    send.end_us = send.start_us + each_us;
    send.arrival_us = send.end_us + latency_us;
  }
  return all;
}

ProvenSchedule cut_into(ProvenSchedule whole, const Demand& demand, int chunks) {
  const int before = static_cast<int>(whole.demand.num_chunks() / demand.num_chunks());
  number_transfers(whole.topology, whole.demand, whole.schedule.sends);
  whole.schedule.sends = cut_finer(whole.schedule.sends, chunks / before);
  whole.demand = demand.with_chunks(chunks);
  return whole;
}

int common_chunks(const Topology& topology, int of_first, int of_second, double deliveries) {
  if (of_first == of_second) return of_first;
  if (topology.has_message_costs() || topology.has_bandwidth_steps() ||
      std::ranges::any_of(topology.nodes(), &Node::stores))
    return 0;
  const int more = std::max(of_first, of_second);
  const int common = std::lcm(of_first, of_second);
  const bool are_many = common > kMostTimesAsMany * more || deliveries * common > kMostTransfersToMeet;
  return common > more && are_many ? 0 : common;
}

std::optional<Schedule> drawn_together(const Topology& topology, const Demand& demand,
                                       const std::vector<Send>& sends) {
  return accepted(topology, demand, retimed({topology, sends}, topology, demand));
}

}  // namespace rondo
