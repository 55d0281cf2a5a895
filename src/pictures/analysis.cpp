#include "analysis.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rondo/core/replay.hpp"

namespace rondo::pictures {
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

std::vector<LinkLoad> link_loads(const ProvenSchedule& proven) {
  std::vector<LinkLoad> loads(proven.topology.num_links());
  for (const Send& send : proven.schedule.sends) {
    LinkLoad& load = loads[send.link.index()];
    load.bytes += proven.demand.bytes(send.chunk);
    load.busy_us += send.end_us - send.start_us;
    ++load.sends;
  }
  return loads;
}

double axis_end_us(const ProvenSchedule& proven) {
  double end = proven.schedule.finish_us;
  for (const Send& send : proven.schedule.sends) end = std::max(end, send.arrival_us);
  return end;
}

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

std::vector<float> busy_shares(const ProvenSchedule& proven, const std::vector<int>& row_of_link,
                               std::size_t rows, std::size_t bins, double end_us) {
  std::vector<double> links(rows, 0);
  for (const int row : row_of_link) {
    if (row >= 0) links[static_cast<std::size_t>(row)] += 1;
  }
  std::vector<double> busy(rows * bins, 0);
  const double width = end_us / static_cast<double>(bins);
  for (const Send& send : proven.schedule.sends) {
    const int row = row_of_link[send.link.index()];
    if (row < 0) continue;
    double* bin = &busy[static_cast<std::size_t>(row) * bins];
    auto b = std::min(bins - 1, static_cast<std::size_t>(send.start_us / width));
    for (; b < bins && static_cast<double>(b) * width < send.end_us; ++b) {
      const double from = std::max(send.start_us, static_cast<double>(b) * width);
      const double to = std::min(send.end_us, static_cast<double>(b + 1) * width);
      bin[b] += std::max(0.0, to - from);
    }
  }
  std::vector<float> shares(busy.size());
  for (std::size_t i = 0; i < busy.size(); ++i) {
    shares[i] = static_cast<float>(std::min(1.0, busy[i] / (width * std::max(1.0, links[i / bins]))));
  }
  return shares;
}

}  // namespace rondo::pictures
