#pragma once

#include <tuple>
#include <utility>

#include "rondo/core/generators.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo::test {

/// a, b and c in a line with a cut-through switch between b and c; 1 GB/s and 1 us everywhere. One chunk of
/// 1000 bytes goes from a to both: a -> b in [0, 1], there at 2; b -> s in [2, 3]; s -> c in [3, 4], there at
/// 5.
inline ProvenSchedule line(const std::string& name_of_b = "b") {
  TopologyData data{
      .name = "line",
      .nodes = {{.name = "a"}, {.name = name_of_b}, {.name = "c"}, {.kind = NodeKind::switch_, .name = "s"}}};
  for (const auto& [src, dst] : {std::pair{0, 1}, {1, 3}, {3, 2}, {1, 0}, {2, 3}, {3, 1}}) {
    data.links.push_back({.src = NodeId(src), .dst = NodeId(dst), .bandwidth_GBps = 1, .latency_us = 1});
  }
  Demand demand(Collective::broadcast, 1000, 3,
                {{.origin = GpuId(0), .bytes = 1000, .destinations = {GpuId(1), GpuId(2)}}}, 1);
  Schedule schedule{.sends = {{ChunkId(0), LinkId(0), 0, 1, 2},
                              {ChunkId(0), LinkId(1), 2, 3, 4},
                              {ChunkId(0), LinkId(2), 3, 4, 5}},
                    .finish_us = 5};
  return {Topology(std::move(data)), std::move(demand), std::move(schedule),
          LowerBound{4, LatencyCertificate{GpuId(0), GpuId(2)}}, "test"};
}

/// a and b add their 1000 bytes to those of c over a switch, 1 GB/s to it and 2 GB/s, which both share, on:
/// in [0, 1] and [1, 2] from a, in [0.5, 1.5] and [1.5, 2.5] from b; then c hands the sum back to a in [4,
/// 5].
inline ProvenSchedule shared_sum() {
  TopologyData data{
      .name = "shared",
      .nodes = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.kind = NodeKind::switch_, .name = "s"}}};
  for (const auto& [src, dst, GBps] : {std::tuple{0, 3, 1.0}, {1, 3, 1.0}, {3, 2, 2.0}, {2, 0, 1.0}}) {
    data.links.push_back({.src = NodeId(src), .dst = NodeId(dst), .bandwidth_GBps = GBps, .latency_us = 1});
  }
  Contribution sum{.origin = GpuId(0), .bytes = 1000, .destinations = {GpuId(0), GpuId(2)}};
  sum.sources = {GpuId(0), GpuId(1), GpuId(2)};
  sum.reduce = true;
  Demand demand(Collective::custom, 1000, 3, {sum}, 1);
  Schedule schedule{.sends = {{ChunkId(0), LinkId(0), 0, 1, 2},
                              {ChunkId(0), LinkId(1), 0.5, 1.5, 2.5},
                              {ChunkId(0), LinkId(2), 1, 2, 3, SendOp::reduce},
                              {ChunkId(0), LinkId(2), 1.5, 2.5, 3.5, SendOp::reduce},
                              {ChunkId(0), LinkId(3), 4, 5, 6}},
                    .finish_us = 6};
  return {Topology(std::move(data)), std::move(demand), std::move(schedule), std::nullopt, "test"};
}

/// `per_link` sends of chunk after chunk on every link of the topology: nothing that a replay would accept,
/// but as much to draw as one likes.
inline ProvenSchedule crowded(Topology topology, int per_link) {
  Demand demand = make_demand(Collective::allgather, 1e9, topology.num_gpus(), 4);
  Schedule schedule{.finish_us = static_cast<double>(per_link)};
  for (int i = 0; i < per_link; ++i) {
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const auto chunk = (l * 31 + static_cast<std::size_t>(i) * 7) % demand.num_chunks();
      schedule.sends.push_back({ChunkId(chunk), LinkId(l), static_cast<double>(i), i + 0.5, i + 0.9});
    }
  }
  return {std::move(topology), std::move(demand), std::move(schedule)};
}

}  // namespace rondo::test
