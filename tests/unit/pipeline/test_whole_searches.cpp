// Searches of several seconds each, in full: the sanitizers do without them.

#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

namespace rondo::test_whole_searches {
namespace {

using Fabric = std::shared_ptr<const Topology>;

SynthesisResult solve(const Fabric& topology, const Demand& demand, const SolveOptions& options = {}) {
  SynthesisResult result = synthesize({topology, demand, options}, {*make_local_communicator()});
  verify(result.proven);
  return result;
}

Fabric shipped_dgx1() {
  return std::make_shared<const Topology>(load_topology("dgx1"));
}

SolveOptions quick() {
  SolveOptions options;
  options.improve_work = 1e5;
  return options;
}

TEST(Synthesize, AllToAllOnADgx1TriesThirds) {
  const auto dgx1 = shipped_dgx1();
  const SynthesisResult result = solve(dgx1, make_demand(Collective::alltoall, 1e9, 8, 1));
  EXPECT_EQ(result.proven.demand.chunks_per_contribution() % 3, 0);
  EXPECT_LT(result.proven.schedule.finish_us, 13'335);
}

/// Of 64 KB the flow's schedule ends at 1.88 us, and local search takes part of it other ways.
TEST(Synthesize, LocalSearchImprovesAllToAll) {
  const SynthesisResult result = solve(shipped_dgx1(), make_demand(Collective::alltoall, 64e3, 8, 1));
  EXPECT_LT(result.proven.schedule.finish_us, 0.99 * result.metrics.at("finish_before_improvement_us"));
}

/// Moves of single transfers alone end at 2.34 us.
TEST(Synthesize, LocalSearchReplantsWithoutSwitches) {
  EXPECT_LT(
      solve(shipped_dgx1(), make_demand(Collective::reduce_scatter, 256e3, 8, 1)).proven.schedule.finish_us,
      2.33);
}

// Transfers slower than a link that they share start a message cost after one another, and backwards end so.
TEST(ReduceScatter, IsTimedAnewWhereMessagesWouldStartTogether) {
  struct Part {
    int src;
    int dst;
    double GBps;
    double latency_us;
    double message_us;
  };
  const Part parts[] = {{0, 4, 50, 0, 0.7},    {4, 0, 50, 0.35, 0.2}, {1, 4, 50, 0, 1.7},
                        {4, 1, 25, 0.35, 0.2}, {2, 4, 50, 0.35, 0.7}, {4, 2, 10, 0.35, 0},
                        {3, 4, 25, 0.35, 0.7}, {4, 3, 25, 0, 0},      {2, 3, 50, 0, 0},
                        {3, 2, 50, 0.35, 0.7}, {3, 0, 25, 0, 0.7},    {0, 3, 25, 0.35, 0.7}};
  TopologyData data{"uneven", "", std::vector<Node>(4), {}, {}};
  data.nodes.push_back({.kind = NodeKind::switch_, .multicast = false});
  for (const Part& part : parts) {
    data.links.push_back({.src = NodeId{part.src},
                          .dst = NodeId{part.dst},
                          .bandwidth_GBps = part.GBps,
                          .latency_us = part.latency_us,
                          .message_us = part.message_us});
  }
  const auto topology = std::make_shared<const Topology>(data);
  EXPECT_LE(solve(topology, make_demand(Collective::reduce_scatter, 4e3, 4, 1), quick()).gap, 0.1);
}

// Corners of a torus exchange data over GPUs that take no part: less memory, later.
TEST(RelayMemory, IsHeededByEnginesAndLocalSearch) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const Demand demand = make_demand(Collective::alltoall, 16e6, 16, 1, GpuId{0},
                                    {.group = {GpuId{0}, GpuId{2}, GpuId{8}, GpuId{10}}});
  SolveOptions options;
  options.chunks = 2;
  const double chunk_bytes = demand.contributions().front().bytes / options.chunks;
  for (const std::string engine : {"list", "flow"}) {
    options.engine = engine;
    double before_us = 0;
    for (const double chunks : {2.0, 1.0}) {
      const auto limited = std::make_shared<const Topology>(with_relay_memory(*torus, chunks * chunk_bytes));
      options.improve_work = 0;
      const SynthesisResult result = solve(limited, demand, options);
      const std::vector<double> peaks =
          peak_relay_bytes(*torus, result.proven.demand, result.proven.schedule.sends);
      EXPECT_LE(*std::ranges::max_element(peaks), chunks * chunk_bytes * (1 + 1e-9));
      EXPECT_GE(result.proven.schedule.finish_us, before_us) << engine << chunks;
      before_us = 0.98 * result.proven.schedule.finish_us;
      options.improve_work = 3e3;
      const SynthesisResult improved = solve(limited, demand, options);
      EXPECT_LE(improved.proven.schedule.finish_us, result.proven.schedule.finish_us) << engine << chunks;
    }
  }
  options.engine = "auto";
  const auto without = std::make_shared<const Topology>(with_relay_memory(*torus, 0));
  expect_error(ExitCode::unavailable, {"GPU 0", "GPU 2", "--relay-memory", "--chunks"},
               [&] { solve(without, demand, options); });
  // Everybody wants everything: nobody only passes on.
  solve(without, make_demand(Collective::allgather, 16e6, 16, 1), quick());
}

// With room for four chunks these routes used to end 78 us earlier than with any.
TEST(RelayMemory, MoreIsNoHindrance) {
  const Fabric mesh = generated("mesh", {{"dims", "4x4"}});
  const Demand demand = make_demand(Collective::alltoall, 64e6, 16, 1, GpuId{0},
                                    {.group = {GpuId{0}, GpuId{3}, GpuId{12}, GpuId{15}}});
  SolveOptions options;
  options.chunks = 4;
  options.engine = "flow";
  options.improve_work = 0;
  const double any_us = solve(mesh, demand, options).proven.schedule.finish_us;
  for (const double chunks : {1.0, 2.0, 4.0, 8.0}) {
    const auto limited = std::make_shared<const Topology>(with_relay_memory(*mesh, chunks * 4e6));
    EXPECT_LE(any_us, solve(limited, demand, options).proven.schedule.finish_us) << chunks;
  }
}

// Of a ring of n all links carry 2 (n - 1) / n of the buffer, half of it in each direction.
TEST(AllReduce, OfARingIsWithinAHundredthOfItsBound) {
  const SynthesisResult result =
      solve(generated("ring", {{"gpus", "8"}}), make_demand(Collective::allreduce, 1e9, 8, 1), quick());
  EXPECT_GE(result.proven.lower_bound->us, 1e9 / 57.143e3 * (1 - 1e-4));
  EXPECT_LE(result.gap, 0.01);
}

TEST(AllReduce, OfAMeshNeedsMoreThanItsHalvesOneAfterTheOther) {
  const auto mesh = generated("mesh", {{"dims", "3x3"}});
  const Demand demand = make_demand(Collective::allreduce, 1e9, 9, 1);
  const SynthesisResult whole = solve(mesh, demand, quick());
  EXPECT_LE(whole.gap, 0.02);
  SolveOptions options;
  options.engine = "queue";
  const SynthesisResult halves = solve(mesh, demand, options);
  EXPECT_EQ(halves.engine.substr(0, 12), "halves/queue");
  EXPECT_GT(halves.proven.schedule.finish_us, 1.2 * whole.proven.schedule.finish_us);
}

// Halves one after the other end a latency and a chunk's time later than the bound says.
TEST(AllReduce, EndsAtItsBoundByKnownAlgorithmsWhereTheseDo) {
  const SynthesisResult ring =
      solve(generated("ring", {{"gpus", "8"}}), make_demand(Collective::allreduce, 16e6, 8, 1), quick());
  EXPECT_EQ(ring.engine, "ring");
  EXPECT_NEAR(ring.proven.schedule.finish_us, 280.5, 1e-6);
  const SynthesisResult pairs =
      solve(generated("full", {{"gpus", "8"}}), make_demand(Collective::allreduce, 1e6, 8, 1), quick());
  EXPECT_EQ(pairs.engine, "direct");
  EXPECT_NEAR(pairs.proven.schedule.finish_us, 5.5, 1e-6);
}

/// Eight chunks go to GPU 0 in two steps of 0.7 us, 1.7 us over InfiniBand, and two steps on: 4.5 us and the
/// bytes. One after another they cost eight messages of 1.7 us there.
TEST(Joining, SmallDataOnTheLinksOfTaccl) {
  const auto topology = std::make_shared<const Topology>(load_topology("ndv2-2-taccl"));
  const Demand demand = make_demand(Collective::allgather, 1e3, 16, 1);
  const auto finish_us = [&](bool join) {
    SolveOptions options;
    options.join = join;
    options.chunks = 1;
    options.engine = "list";
    options.improve_work = join ? 1e5 : 0;
    return solve(topology, demand, options).proven.schedule.finish_us;
  };
  const double joined_us = finish_us(true);
  EXPECT_GT(joined_us, 4.5);
  EXPECT_LT(joined_us, 4.9);
  EXPECT_GT(finish_us(false), 8 * 1.7);
}

}  // namespace
}  // namespace rondo::test_whole_searches
