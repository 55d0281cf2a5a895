#include "transfers.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/chunk_gpu_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/local_search/relay_fit.hpp"

namespace rondo {
namespace {

/// A chunk on its way from one GPU to one or more.
struct TreeMove {
  ChunkId chunk;
  double start_us = 0;
  std::vector<LinkId> links = {};
  std::vector<int> parents = {};  ///< as make_hop wants them
};

/// The transfers that the sends make up, by start.
std::vector<TreeMove> tree_moves(const Topology& topology, const Demand& demand,
                                 std::span<const Send> sends) {
  const Transfers transfers = transfers_of(topology, demand, sends);
  std::vector<TreeMove> moves;
  std::map<int, std::size_t> move_of;        // per first send
  std::vector<int> place(sends.size(), -1);  // in its move
  for (const Delivery& delivery : transfers.deliveries) {
    const auto [entry, is_new] = move_of.try_emplace(delivery.first_send, moves.size());
    if (is_new) moves.push_back({delivery.chunk, delivery.start_us});
    TreeMove& move = moves[entry->second];
    std::vector<int> path;  // what no delivery before has, from the GPU on
    for (int s = delivery.last_send; s >= 0 && place[index(s)] < 0; s = transfers.continued[index(s)])
      path.push_back(s);
    for (; !path.empty(); path.pop_back()) {
      const int s = path.back();
      const int before = transfers.continued[index(s)];
      place[index(s)] = static_cast<int>(move.links.size());
      move.links.push_back(sends[index(s)].link);
      move.parents.push_back(before < 0 ? -1 : place[index(before)]);
    }
  }
  return moves;
}

/// As pruned() does, where each send onwards uses the latest arrival that is not after it: what was dropped
/// may have been fetched again.
std::vector<Send> pruned_with_latest_causes(const Topology& topology, const Demand& demand,
                                            std::span<const Send> sends) {
  Transfers transfers = transfers_of(topology, demand, sends);
  std::vector<Delivery>& deliveries = transfers.deliveries;
  const auto not_after = [](double a_us, double b_us) { return a_us <= b_us || times_equal(a_us, b_us); };
  for (Delivery& onward : deliveries) {
    onward.cause = -1;
    for (std::size_t d = 0; d < deliveries.size() && onward.src != demand.origin(onward.chunk); ++d) {
      const Delivery& in = deliveries[d];
      if (in.chunk != onward.chunk || in.dst != onward.src || !not_after(in.arrival_us, onward.start_us))
        continue;
      if (onward.cause < 0 || in.arrival_us > deliveries[index(onward.cause)].arrival_us)
        onward.cause = static_cast<int>(d);
    }
  }
  const std::vector<char> needed = needed_deliveries(demand, deliveries);
  std::vector<char> is_kept(sends.size(), 0);
  for (std::size_t d = 0; d < needed.size(); ++d) {
    for (int s = needed[d] != 0 ? deliveries[d].last_send : -1; s >= 0; s = transfers.continued[index(s)])
      is_kept[index(s)] = 1;
  }
  std::vector<Send> kept;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (is_kept[s] != 0) kept.push_back(sends[s]);
  }
  return kept;
}

/// The times that the sends have.
Schedule as_it_is(const Topology& topology, const Demand& demand, std::vector<Send> sends) {
  Schedule schedule{std::move(sends), 0};
  ChunkGpuTable<double> first_us(demand, std::numeric_limits<double>::infinity());
  for (const Send& send : schedule.sends) {
    const NodeId head = topology.link(send.link).dst;
    if (!topology.is_gpu(head)) continue;
    double& us = first_us(send.chunk, topology.gpu_of(head));
    us = std::min(us, send.arrival_us);
  }
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    for (const GpuId d : demand.destinations(ChunkId{i}))
      schedule.finish_us = std::max(schedule.finish_us, first_us(ChunkId{i}, d));
  }
  canonicalise(schedule);
  return schedule;
}

}  // namespace

std::vector<Send> sends_on_grid(const Topology& topology, const Demand& demand, const FlowField& field,
                                double tau_us) {
  std::vector<TreeMove> moves;
  std::vector<int> path;  // of the last transfer, from its GPU to its last link
  for (const FlowField::Entry& entry : field.entries) {
    const NodeId tail = topology.link(entry.link).src;
    if (topology.is_gpu(tail)) {
      moves.push_back({ChunkId{entry.commodity}, entry.epoch * tau_us});
      path.clear();
    }
    TreeMove& move = moves.back();
    while (!path.empty() && topology.link(move.links[index(path.back())]).dst != tail) path.pop_back();
    move.links.push_back(entry.link);
    move.parents.push_back(path.empty() ? -1 : path.back());
    path.push_back(static_cast<int>(move.links.size()) - 1);
  }
  std::ranges::stable_sort(moves, {}, &TreeMove::start_us);
  std::vector<Send> sends;
  for (const TreeMove& move : moves) {
    append_sends(topology, make_hop(topology, move.links, move.parents), move.chunk, demand.bytes(move.chunk),
                 move.start_us, sends);
  }
  return sends;
}

Schedule retime(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  ChunkGpuTable<double> held_from_us(demand, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    held_from_us(ChunkId{i}, demand.origin(ChunkId{i})) = demand.ready_us(ChunkId{i});
  }
  LinkTimetable timetable(topology);
  Schedule schedule;
  for (const TreeMove& move : tree_moves(topology, demand, sends)) {
    const ChunkId c = move.chunk;
    const Hop hop = make_hop(topology, move.links, move.parents);
    const double start_us = timetable.earliest_start(hop, demand.bytes(c), held_from_us(c, hop.src));
    const std::size_t first = schedule.sends.size();
    timetable.reserve(hop, c, demand.bytes(c), start_us, schedule.sends);
    for (std::size_t i = first; i < schedule.sends.size(); ++i) {
      const Send& send = schedule.sends[i];
      const NodeId head = topology.link(send.link).dst;
      if (!topology.is_gpu(head)) continue;
      double& held = held_from_us(c, topology.gpu_of(head));
      held = std::min(held, send.arrival_us);
    }
  }
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    for (const GpuId d : demand.destinations(ChunkId{i})) {
      schedule.finish_us = std::max(schedule.finish_us, held_from_us(ChunkId{i}, d));
    }
  }
  canonicalise(schedule);
  return schedule;
}

std::optional<Schedule> in_memory(const Topology& topology, const Demand& demand, Schedule schedule) {
  if (!has_limited_relays(topology, demand)) return schedule;
  try {
    return fitted_to_memory(topology, demand, std::move(schedule), kAnyConcurrency);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    return std::nullopt;
  }
}

Schedule retimed_from_grid(const Topology& topology, const Demand& demand, std::span<const Send> on_grid) {
  if (!has_limited_relays(topology, demand))
    return retime(topology, demand, pruned(topology, demand, on_grid));
  Schedule kept = as_it_is(topology, demand, pruned_with_latest_causes(topology, demand, on_grid));
  // Sends that come again are none of a plan's.
  auto fitted = in_memory(topology, demand, retime(topology, demand, pruned(topology, demand, on_grid)));
  return fitted && fitted->finish_us < kept.finish_us ? *std::move(fitted) : std::move(kept);
}

}  // namespace rondo
