#pragma once

#include "rondo/core/schedule.hpp"

namespace rondo {

/// Broadcast of 3000 bytes in two chunks over the line 0 -> 1 -> 2 at 1 and 0.3 GB/s, latencies 0.1 and 0.7
/// us, with a latency bound. The figures need all bits of a double.
inline ProvenSchedule example_schedule() {
  Topology topology(
      {.name = "line",
       .source = "by hand",
       .nodes = {{.kind = NodeKind::gpu, .chassis = 4, .name = "a"},
                 {.kind = NodeKind::gpu},
                 {.kind = NodeKind::gpu, .name = "\xc3\xa9"},
                 {.kind = NodeKind::switch_,
                  .name = "spare",
                  .multicast = false,
                  .forwarding = Forwarding::store_and_forward,
                  .buffer_bytes = 1e5}},
       .links = {{.src = NodeId{0}, .dst = NodeId{1}, .bandwidth_GBps = 1, .latency_us = 0.1},
                 {.src = NodeId{1}, .dst = NodeId{2}, .bandwidth_GBps = 0.3, .latency_us = 0.7}},
       .shared_bandwidth = {{.name = "nic", .links = {LinkId{0}, LinkId{1}}, .bandwidth_GBps = 1.3}}});
  Demand demand = make_demand(Collective::broadcast, 3000, 3, 2);
  const double first = 1.5;
  const double slow = 1500 / (0.3 * 1e3);
  const auto send = [](std::int32_t chunk, std::int32_t link, double start, double length, double latency) {
    return Send{.chunk = ChunkId{chunk},
                .link = LinkId{link},
                .start_us = start,
                .end_us = start + length,
                .arrival_us = start + length + latency};
  };
  Schedule schedule{.sends = {send(0, 0, 0, first, 0.1), send(1, 0, first, first, 0.1),
                              send(0, 1, first + 0.1, slow, 0.7), send(1, 1, first + 0.1 + slow, slow, 0.7)}};
  canonicalise(schedule);
  schedule.finish_us = first + 0.1 + slow + slow + 0.7;
  return {.topology = std::move(topology),
          .demand = std::move(demand),
          .schedule = std::move(schedule),
          .lower_bound = LowerBound{0.1 + 0.7, LatencyCertificate{GpuId{0}, GpuId{2}}},
          .producer = "rondo test"};
}

/// With all that only version 2 can say: costs of messages, steps, a switch that adds, sums, what is held of
/// one, data of two holders, transfers, rates, and the bound of a partition. The replay would refuse it.
inline ProvenSchedule newest_schedule() {
  ProvenSchedule proven = example_schedule();
  TopologyData data = proven.topology.data();
  data.nodes[3].reduce = true;
  data.links[0].message_us = 1.0 / 3;
  data.links[1].bandwidth_steps = {{0, 0.3}, {100.1, 0}, {200, 1e-3}};
  proven.topology = Topology(std::move(data));
  const GpuId a{0};
  const GpuId b{1};
  const GpuId c{2};
  Contribution sum{.origin = a, .bytes = 1500, .destinations = {a, b}, .reduce = true};
  sum.sources = {c, a, b};
  sum.source_ready_us = {0.5, 0.1, 0};
  sum.held = {{.gpu = c, .sources = {b, c}}, {.gpu = a}};
  Contribution of_two{.origin = b, .bytes = 1500, .destinations = {a}, .ready_us = 2.5};
  of_two.sources = {b, c};
  proven.demand = Demand(Collective::custom, 3000, 3, {sum, of_two}, 1);
  proven.schedule.sends[1].op = SendOp::reduce;
  proven.schedule.sends[1].transfer = 7;
  proven.schedule.sends[2].transfer = 7;
  proven.schedule.sends[2].rate_GBps = 1.0 / 7;
  proven.lower_bound = LowerBound{1.0 / 7, PartitionCertificate{.part = {0, 1, 1, -1}, .enter = false}};
  return proven;
}

/// With contributions that differ in bytes and readiness.
inline ProvenSchedule uneven_schedule() {
  ProvenSchedule proven = example_schedule();
  proven.demand =
      Demand(Collective::custom, 3000, 3,
             {{.origin = GpuId{0}, .bytes = 1000.0 / 3, .destinations = {GpuId{1}, GpuId{2}}},
              {.origin = GpuId{1}, .bytes = 8000.0 / 3, .destinations = {GpuId{2}}, .ready_us = 0.3}},
             1);
  return proven;
}

}  // namespace rondo
