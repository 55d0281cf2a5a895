#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "rondo/core/random.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/solvers/solvers.hpp"

/// Memory of GPUs for what they only pass on (TE-CCL, appendix B).
namespace rondo::test_milp_memory {
namespace {

constexpr double kChunk = 1000;  // 1 us at 1 GB/s
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

struct Edge {
  int src, dst;
  double latency_us = 0;
  double bandwidth_GBps = 1;
};

/// GPU 1 has memory for so many chunks.
Topology fabric(int gpus, const std::vector<Edge>& edges, double chunks,
                const std::vector<Node>& switches = {}) {
  TopologyData data;
  data.nodes.assign(static_cast<std::size_t>(gpus), Node{NodeKind::gpu});
  data.nodes[1].relay_bytes = chunks * kChunk;
  data.nodes.insert(data.nodes.end(), switches.begin(), switches.end());
  for (const Edge& e : edges)
    data.links.push_back({NodeId{e.src}, NodeId{e.dst}, e.bandwidth_GBps, e.latency_us});
  return Topology(std::move(data));
}

EngineResult solve(const Topology& topology, const Demand& demand, int epochs = 0) {
  Toolbox tools;
  tools.formulation = all_formulations();
  tools.lp = make_clp_solver();
  tools.milp = make_cbc_solver();
  EngineOptions options;
  options.epochs.num_epochs = epochs;
  const Instance instance{std::make_shared<const Topology>(topology), demand};
  EngineResult result = prepare_milp(instance, options, tools)(demand, options);
  EXPECT_TRUE(result.schedule.has_value());
  EXPECT_EQ(result.metrics.at("proven_optimal_on_grid"), 1);
  const ReplayResult replayed = replay(topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
  EXPECT_NEAR(replayed.finish_us, result.schedule->finish_us, 1e-9);
  return result;
}

double finish_us(const Topology& topology, const Demand& demand) {
  return solve(topology, demand).schedule->finish_us;
}

/// So many chunks from GPU 0 to GPU 2.
Demand chunks_to_2(int chunks) {
  return {Collective::custom, chunks * kChunk, 3, {{GpuId{0}, chunks * kChunk, {GpuId{2}}}}, chunks};
}

// Without a limit they follow each other: 1 us more for each. One at a time, each takes its 2 us.
TEST(MilpMemory, OfOneChunkHoldsUpALine) {
  const std::vector<Edge> line{{0, 1}, {1, 2}};
  EXPECT_EQ(finish_us(fabric(3, line, kUnlimited), chunks_to_2(3)), 4);
  EXPECT_EQ(finish_us(fabric(3, line, 2), chunks_to_2(3)), 4);
  EXPECT_EQ(finish_us(fabric(3, line, 1), chunks_to_2(3)), 6);
  EXPECT_EQ(finish_us(fabric(3, line, 1.9), chunks_to_2(3)), 6);
}

// A chunk is there from its first byte on, 0.5 us after its start; the way through the switch takes 1.5 us.
// It starts on at 2 and is there until 3: the next one starts at 3 (its first byte comes at 3.5), not at 2.
TEST(MilpMemory, CountsFromTheFirstByteOn) {
  const std::vector<Edge> line{{0, 3, 0.5}, {3, 1}, {1, 2}};
  const Node copier{NodeKind::switch_};
  const auto grid_epochs = [&](double chunks) {
    return solve(fabric(3, line, chunks, {copier}), chunks_to_2(2)).metrics.at("grid_epochs");
  };
  EXPECT_EQ(grid_epochs(kUnlimited), 4);  // 0 to 1.5, 2 to 3; 1 to 2.5, 3 to 4
  EXPECT_EQ(grid_epochs(1), 6);           // 3 to 4.5, 5 to 6
}

// GPU 1 passes `a` on to 4, which has to leave it by 2 us, as that takes 4 more from then on, and to 3; and
// `b` to 6, to which it has seven chunks of its own as well. All eight have to leave it by 4 us, over two
// links, so that both are taken until then, and `a` reaches 3 later. With memory for one chunk `a` has to
// make room for `b`.
TEST(MilpMemory, WhatWasDroppedIsFetchedAgain) {
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {1, 3}, {1, 5}, {2, 4, 3}, {3, 6, 1}, {5, 6, 1}};
  std::vector<Contribution> parts{{GpuId{0}, kChunk, {GpuId{3}, GpuId{4}}}, {GpuId{0}, kChunk, {GpuId{6}}}};
  for (int own = 0; own < 7; ++own) parts.push_back({GpuId{1}, kChunk, {GpuId{6}}});
  const Demand demand(Collective::custom, 9 * kChunk, 7, parts, 1);
  const EngineResult result = solve(fabric(7, edges, 1), demand, 6);
  EXPECT_EQ(result.schedule->finish_us, 6);
  const auto fetches = std::ranges::count_if(result.schedule->sends, [](const Send& send) {
    return send.chunk == ChunkId{0} && send.link == LinkId{0};
  });
  EXPECT_EQ(fetches, 2);
}

// All sends take a whole epoch, so that the grid loses nothing.
TEST(MilpMemory, NoScheduleOfAnotherEngineIsEarlier) {
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {1, 0}};
  int later = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    std::vector<Contribution> parts;
    for (int part = 0; part < 4; ++part) {
      const int from = static_cast<int>(random.below(4));
      const int to = (from + 1 + static_cast<int>(random.below(3))) % 4;
      parts.push_back({GpuId{from}, kChunk, {GpuId{to}}});
    }
    const Demand demand(Collective::custom, 4 * kChunk, 4, parts, 1);
    const Topology limited = with_relay_memory(fabric(4, edges, 1), kChunk);
    const double optimum_us = finish_us(limited, demand);
    const double unlimited_us = finish_us(with_relay_memory(limited, kUnlimited), demand);
    EXPECT_GE(optimum_us, unlimited_us);
    later += optimum_us > unlimited_us ? 1 : 0;
    const Instance instance{std::make_shared<const Topology>(limited), demand};
    const Schedule listed = *prepare_list(instance, {}, {})(demand, {}).schedule;
    EXPECT_GE(fitted_to_memory(limited, demand, listed, 1).finish_us, optimum_us - 1e-9) << seed;
  }
  EXPECT_GT(later, 0);
}

}  // namespace
}  // namespace rondo::test_milp_memory
