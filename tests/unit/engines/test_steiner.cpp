#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/flows/steiner_packing.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo steiner_engine();
}  // namespace rondo

namespace rondo::test_steiner {
namespace {

/// GPU 0 has a megabyte for GPUs 1 and 2, of 1000 us a link; it leads to GPU 1 and to GPU 3, which wants
/// none.
std::shared_ptr<const Topology> beside_a_relay() {
  return fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(0, 3), link(1, 2), link(3, 2), link(2, 1)});
}

Demand of_three(int chunks = 1) {
  return make_demand(Collective::broadcast, kMB, 4, chunks, GpuId{0},
                     {.group = {GpuId{0}, GpuId{1}, GpuId{2}}});
}

SteinerPacking pack(const Topology& topology, const Demand& demand) {
  return pack_steiner_trees(topology, demand, make_clp_column_master, 300, {});
}

Toolbox columns_by_clp() {
  return {all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
}

// Half of the data goes 0 -> 1 -> 2, the other half 0 -> 3 -> 2 -> 1.
TEST(SteinerPacking, HalfOfTheDataGoesOverTheRelay) {
  const SteinerPacking packing = pack(*beside_a_relay(), of_three());
  EXPECT_NEAR(packing.busy_us, 500, 1e-6);
  ASSERT_EQ(packing.blocks.size(), 1U);
  ASSERT_EQ(packing.blocks.front().trees.size(), 2U);
  std::size_t hops = 0;
  for (const SteinerTree& tree : packing.blocks.front().trees) {
    EXPECT_NEAR(tree.weight, 0.5, 1e-9);
    hops += tree.hops.size();
  }
  EXPECT_EQ(hops, 5U);
}

// The trees may do what they like within the group of 1.2 GB/s that the two links of GPU 0 share.
TEST(SteinerPacking, KeepsWithinSharedBandwidth) {
  TopologyData data = beside_a_relay()->data();
  data.shared_bandwidth.push_back({"nic", {LinkId{0}, LinkId{1}}, 1.2});
  EXPECT_NEAR(pack(Topology(data), of_three()).busy_us, 1000 / 1.2, 1e-6);
}

TEST(SteinerPacking, TakesContributionsOfTheSameEndsForOne) {
  const std::vector<Contribution> parts(
      3, {.origin = GpuId{0}, .bytes = kMB / 3, .destinations = {GpuId{1}, GpuId{2}}});
  const SteinerPacking packing = pack(*beside_a_relay(), Demand(Collective::custom, kMB, 4, parts, 1));
  ASSERT_EQ(packing.blocks.size(), 1U);
  EXPECT_EQ(packing.blocks.front().contributions, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_NEAR(packing.busy_us, 500, 1e-6);
}

// Two paths of 1000 us from GPU 0 to GPU 2, and 1000 us from GPU 1 for GPU 2 over one of them: the pair
// leaves it to that, once it is there, and the prices prove so.
TEST(SteinerPacking, PairsTakeSeveralPathsBesideOtherData) {
  const auto topology = beside_a_relay();
  const std::vector<Contribution> parts{
      {.origin = GpuId{0}, .bytes = 2 * kMB, .destinations = {GpuId{2}}},
      {.origin = GpuId{1}, .bytes = kMB, .destinations = {GpuId{2}}, .ready_us = 600}};
  const Demand demand(Collective::custom, 3 * kMB, 4, parts, 1);
  const SteinerPacking packing = pack(*topology, demand);
  EXPECT_EQ(packing.from_us, (std::vector<double>{0, 600}));
  // The links into GPU 2 have 3 MB to carry.
  EXPECT_NEAR(packing.busy_us, 1600, 1e-6);
  double of_pair = 0;
  for (const SteinerTree& path : packing.blocks.front().trees) of_pair += path.weight;
  EXPECT_NEAR(of_pair, 1, 1e-9);
  EXPECT_GE(packing.blocks.front().trees.size(), 2U);
  const double proven_us = sound_bound_of(*topology, demand, packing.prices);
  EXPECT_GT(proven_us, 1600 * (1 - 1e-3));
  EXPECT_LE(proven_us, 1600 + 2);
}

// GPU 0 has 1 MB for GPUs 1 and 2: both ends of the ring have to take it all, and half comes from each side.
TEST(SteinerPacking, PricesOfSeveralDestinationsAddUp) {
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(0, 2), link(2, 1)});
  const Demand demand(Collective::custom, kMB, 3,
                      {{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}, GpuId{2}}}}, 1);
  const SteinerPacking packing = pack(*topology, demand);
  EXPECT_NEAR(packing.busy_us, 500, 1e-6);
  EXPECT_NEAR(sound_bound_of(*topology, demand, packing.prices), 500, 2);
}

TEST(SteinerEngine, EndsAsSoonAsThePipelineAllows) {
  const auto topology = beside_a_relay();
  const EngineInfo engine = steiner_engine();
  const Instance instance{topology, of_three()};
  EXPECT_TRUE(engine.applicable(instance, {}));
  const PreparedEngine prepared = engine.prepare(instance, {}, columns_by_clp());
  for (const std::string& policy : engine.policies) {
    const Demand demand = of_three(100);
    const EngineResult result = prepared(demand, {.policy = policy});
    ASSERT_TRUE(result.schedule);
    const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
    ASSERT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_DOUBLE_EQ(replayed.finish_us, result.schedule->finish_us);
    // 50 chunks of 10 us, at half of the rate two at a time, and two hops more for the last ones.
    EXPECT_LE(replayed.finish_us, policy == "half-rate" ? 500 + 3 * 21 : 500 + 3 * 11);
  }
}

TEST(SteinerEngine, IsLeftOutWhereAllGpusWantAllAndRefusesSums) {
  const auto topology = generated("full", {{"gpus", "4"}});
  const EngineInfo engine = steiner_engine();
  EXPECT_FALSE(engine.applicable({topology, make_demand(Collective::allgather, 4e6, 4, 1)}, {}));
  EXPECT_FALSE(engine.offers({topology, of_three()}, {.concurrency = 1})("half-rate"));
  expect_error(ExitCode::unavailable, {"engine steiner", "--engine auto"}, [&] {
    engine.prepare({topology, make_demand(Collective::allreduce, 4e6, 4, 1)}, {}, columns_by_clp());
  });
}

}  // namespace
}  // namespace rondo::test_steiner
