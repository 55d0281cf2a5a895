#include "transfers.hpp"

#include <algorithm>
#include <limits>

#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

bool cut_through(const Topology& topology, NodeId n) {
  return topology.node(n).forwarding == Forwarding::cut_through;
}

/// The transfer as a hop that reserves a tree of links instead of a path.
Hop tree_hop(const Topology& topology, const Transfer& transfer) {
  const auto& links = transfer.links;
  // Links that cut-through switches join run at the rate of the slowest of them (FORMATS.md 3, rule 4).
  std::vector<std::size_t> section(links.size());
  std::vector<double> rate(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = topology.link(links[i].link);
    const bool joined = links[i].parent >= 0 && cut_through(topology, link.src);
    section[i] = joined ? section[index(links[i].parent)] : i;
    double& section_rate = rate[section[i]];
    section_rate = joined ? std::min(section_rate, link.bandwidth_GBps) : link.bandwidth_GBps;
  }
  Hop hop;
  for (std::size_t i = 0; i < links.size(); ++i) {
    HopLink part{links[i].link, 0, 0, transmission_us(1, rate[section[i]])};
    if (links[i].parent >= 0) {
      const HopLink& in = hop.links[index(links[i].parent)];
      part.offset_us = in.offset_us + topology.link(in.link).latency_us;
      part.offset_us_per_byte = in.offset_us_per_byte + (section[i] == i ? in.us_per_byte : 0);
    }
    hop.links.push_back(part);
  }
  return hop;
}

/// One value a chunk and GPU.
template <class T>
class PerChunkAndGpu {
 public:
  PerChunkAndGpu(const Demand& demand, T value)
      : num_gpus_(demand.num_gpus()), values_(demand.num_chunks() * num_gpus_, value) {}
  T& operator()(ChunkId c, GpuId g) { return values_[c.index() * num_gpus_ + g.index()]; }

 private:
  std::size_t num_gpus_;
  std::vector<T> values_;
};

}  // namespace

std::vector<Transfer> transfers_of(const Topology& topology, const FlowField& field) {
  std::vector<Transfer> transfers;
  std::vector<int> path;  // of the last transfer, from its GPU to its last link
  for (const FlowField::Entry& entry : field.entries) {
    const NodeId tail = topology.link(entry.link).src;
    if (topology.is_gpu(tail)) {
      transfers.push_back({ChunkId{entry.commodity}, entry.epoch, {{entry.link, -1}}});
      path = {0};
      continue;
    }
    auto& links = transfers.back().links;
    while (topology.link(links[index(path.back())].link).dst != tail) path.pop_back();
    links.push_back({entry.link, path.back()});
    path.push_back(static_cast<int>(links.size()) - 1);
  }
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.epoch < b.epoch; });
  return transfers;
}

void remove_useless(std::vector<Transfer>& transfers, const Topology& topology, const Demand& demand) {
  PerChunkAndGpu<char> needed(demand, 0);
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    for (const GpuId d : demand.destinations(ChunkId{i})) needed(ChunkId{i}, d) = 1;
  }
  for (auto transfer = transfers.rbegin(); transfer != transfers.rend(); ++transfer) {
    auto& links = transfer->links;
    std::vector<char> keep(links.size(), 0);
    for (std::size_t i = links.size(); i-- > 0;) {
      const NodeId head = topology.link(links[i].link).dst;
      if (topology.is_gpu(head) && needed(transfer->chunk, topology.gpu_of(head)) != 0) keep[i] = 1;
      if (keep[i] != 0 && links[i].parent >= 0) keep[index(links[i].parent)] = 1;
    }
    std::vector<Transfer::TreeLink> kept;
    std::vector<int> position(links.size(), -1);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (keep[i] == 0) continue;
      position[i] = static_cast<int>(kept.size());
      kept.push_back({links[i].link, links[i].parent < 0 ? -1 : position[index(links[i].parent)]});
    }
    if (!kept.empty()) needed(transfer->chunk, topology.gpu_of(topology.link(kept.front().link).src)) = 1;
    links = std::move(kept);
  }
  std::erase_if(transfers, [](const Transfer& transfer) { return transfer.links.empty(); });
}

Schedule retime(const std::vector<Transfer>& transfers, const Topology& topology, const Demand& demand) {
  PerChunkAndGpu<double> held_from_us(demand, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    held_from_us(ChunkId{i}, demand.origin(ChunkId{i})) = demand.ready_us(ChunkId{i});
  }
  LinkTimetable timetable(topology);
  Schedule schedule;
  for (const Transfer& transfer : transfers) {
    const ChunkId c = transfer.chunk;
    const Hop hop = tree_hop(topology, transfer);
    const GpuId source = topology.gpu_of(topology.link(transfer.links.front().link).src);
    const double start_us = timetable.earliest_start(hop, demand.bytes(c), held_from_us(c, source));
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
