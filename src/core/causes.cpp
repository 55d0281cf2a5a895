#include "rondo/core/causes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

/// When what `send` brings can leave the node that it goes to: a cut-through switch does not wait for all of
/// the chunk.
double ready_us(const Topology& topology, const Send& send) {
  const Link& link = topology.link(send.link);
  const Node& node = topology.node(link.dst);
  const bool passes = node.kind == NodeKind::switch_ && node.forwarding == Forwarding::cut_through;
  return passes ? send.start_us + link.latency_us : send.arrival_us;
}

}  // namespace

std::vector<std::int64_t> causes(const ProvenSchedule& proven) {
  const Topology& topology = proven.topology;
  const auto& sends = proven.schedule.sends;
  const auto chunk_and_target = [&](std::size_t s) {
    return std::pair(sends[s].chunk, topology.link(sends[s].link).dst);
  };
  std::vector<std::size_t> by_target(sends.size());
  std::iota(by_target.begin(), by_target.end(), std::size_t{0});
  std::stable_sort(by_target.begin(), by_target.end(),
                   [&](std::size_t a, std::size_t b) { return chunk_and_target(a) < chunk_and_target(b); });

  std::vector<std::int64_t> cause(sends.size(), -1);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const Send& send = sends[s];
    const NodeId from = topology.link(send.link).src;
    if (from == topology.node_of(proven.demand.origin(send.chunk))) continue;
    const bool at_gpu = topology.is_gpu(from);
    const auto wanted = std::pair(send.chunk, from);
    double best = 0;
    auto it = std::lower_bound(by_target.begin(), by_target.end(), wanted,
                               [&](std::size_t p, const auto& key) { return chunk_and_target(p) < key; });
    for (; it != by_target.end() && chunk_and_target(*it) == wanted; ++it) {
      const double ready = ready_us(topology, sends[*it]);
      if (ready > send.start_us && !times_equal(ready, send.start_us)) continue;
      // A GPU keeps the first copy; a switch passes on the last one.
      if (cause[s] >= 0 && (at_gpu ? ready >= best : ready <= best)) continue;
      cause[s] = static_cast<std::int64_t>(*it);
      best = ready;
    }
  }
  return cause;
}

}  // namespace rondo
