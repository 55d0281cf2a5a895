#include "transfers.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/transfers.hpp"

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

}  // namespace rondo
