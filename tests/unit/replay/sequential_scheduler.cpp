#include "sequential_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Scheduler {
 public:
  Scheduler(const Topology& topology, const Demand& demand)
      : topology_(topology),
        demand_(demand),
        free_us_(topology.num_links(), 0),
        held_us_(demand.num_chunks(), std::vector<double>(topology.num_nodes(), kNever)) {
    for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
      held_us_[c][topology.node_of(demand.origin(ChunkId(c))).index()] = demand.ready_us(ChunkId(c));
    }
  }

  void deliver(ChunkId c, GpuId destination) {
    std::vector<double>& held = held_us_[c.index()];
    const NodeId target = topology_.node_of(destination);
    if (held[target.index()] == kNever) {
      for (const std::vector<LinkId>& stretch : stretches(path_to(c, target))) forward(c, stretch);
    }
    schedule_.finish_us = std::max(schedule_.finish_us, held[target.index()]);
  }

  Schedule take() {
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  /// From the last holder on the shortest path from the origin.
  std::vector<LinkId> path_to(ChunkId c, NodeId target) {
    std::vector<double> length;
    for (const Link& link : topology_.links()) {
      length.push_back(link.latency_us + transmission_us(demand_.bytes(c), link.bandwidth_GBps));
    }
    const NodeId origin = topology_.node_of(demand_.origin(c));
    const ShortestPaths paths = shortest_paths(topology_.graph(), length, origin.value);
    std::vector<LinkId> path;
    for (NodeId n = target; held_us_[c.index()][n.index()] == kNever; n = topology_.link(path.back()).src) {
      path.emplace_back(paths.last_arc[n.index()]);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  bool may_wait(NodeId n) const { return topology_.is_gpu(n) || topology_.node(n).buffer_bytes > 0; }

  /// Cuts a path where the chunk may wait.
  std::vector<std::vector<LinkId>> stretches(const std::vector<LinkId>& path) const {
    std::vector<std::vector<LinkId>> result(1);
    for (const LinkId l : path) {
      if (!result.back().empty() && may_wait(topology_.link(l).src)) result.emplace_back();
      result.back().push_back(l);
    }
    return result;
  }

  /// Sends c over `stretch`, on which nothing may wait, at the first start at which all its links are free.
  void forward(ChunkId c, const std::vector<LinkId>& stretch) {
    std::vector<double>& held = held_us_[c.index()];
    std::vector<Send> sends;  // as if it started at 0
    double section_us = 0;
    for (std::size_t i = 0; i < stretch.size();) {
      std::size_t end = i + 1;  // of the section that is joined by cut-through switches
      while (end < stretch.size() &&
             topology_.node(topology_.link(stretch[end]).src).forwarding == Forwarding::cut_through) {
        ++end;
      }
      double rate = kNever;
      for (std::size_t k = i; k < end; ++k) rate = std::min(rate, topology_.link(stretch[k]).bandwidth_GBps);
      const double duration = transmission_us(demand_.bytes(c), rate);
      for (double start = section_us; i < end; ++i) {
        const double latency = topology_.link(stretch[i]).latency_us;
        sends.push_back({c, stretch[i], start, start + duration, start + duration + latency});
        start += latency;
        section_us = start + duration;
      }
    }
    double start = held[topology_.link(stretch.front()).src.index()];
    for (const Send& send : sends) start = std::max(start, free_us_[send.link.index()] - send.start_us);
    for (Send send : sends) {
      send.start_us += start;
      send.end_us += start;
      send.arrival_us += start;
      free_us_[send.link.index()] = send.end_us;
      schedule_.sends.push_back(send);
    }
    // In a switch with a buffer only this one passage of the chunk goes on, so that its state is forgotten
    // below.
    const NodeId reached = topology_.link(stretch.back()).dst;
    held[reached.index()] = schedule_.sends.back().arrival_us;
    const NodeId left = topology_.link(stretch.front()).src;
    if (!topology_.is_gpu(left)) held[left.index()] = kNever;
  }

  const Topology& topology_;
  const Demand& demand_;
  std::vector<double> free_us_;               ///< per link
  std::vector<std::vector<double>> held_us_;  ///< per chunk and node
  Schedule schedule_;
};

}  // namespace

Schedule sequential_schedule(const Topology& topology, const Demand& demand, Random& random) {
  std::vector<std::pair<ChunkId, GpuId>> wanted;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId(c))) wanted.emplace_back(c, g);
  }
  random.shuffle(std::span(wanted));
  Scheduler scheduler(topology, demand);
  for (const auto& [c, g] : wanted) scheduler.deliver(c, g);
  return scheduler.take();
}

}  // namespace rondo
