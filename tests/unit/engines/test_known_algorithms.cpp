#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "expect_error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/exchange.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "steps/known_algorithm.hpp"
#include "steps/rings.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo ring_engine();
EngineInfo tree_engine();
EngineInfo direct_engine();
EngineInfo recursive_engine();
EngineInfo bruck_engine();
EngineInfo hierarchical_engine();
EngineInfo exchange_engine();
}  // namespace rondo

namespace rondo::test_known_algorithms {
namespace {

using Fabric = std::shared_ptr<const Topology>;

/// When the engine's schedule ends; the replay accepts it.
double finish_us(const EngineInfo& engine, const Fabric& topology, const Demand& demand,
                 const std::string& policy = "") {
  const Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
  EngineOptions options;
  options.policy = policy;
  const PreparedEngine prepared = engine.prepare({topology, demand}, options, tools);
  const EngineResult result = prepared(demand, options);
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << engine.name << ": " << replayed.violation.value_or("");
  EXPECT_NEAR(replayed.finish_us, result.schedule->finish_us, 1e-9 * replayed.finish_us);
  return replayed.finish_us;
}

/// Of a buffer that one link carries in 1000 us.
Demand all_reduce(const Fabric& topology, int chunks) {
  return make_demand(Collective::allreduce, kMB, topology->num_gpus(), chunks);
}
Demand named(Collective collective, const Fabric& topology, int chunks = 1) {
  return make_demand(collective, kMB, topology->num_gpus(), chunks);
}

/// All pairs joined at 1 GB/s, 1 us.
Fabric full(int gpus) {
  return generated("full", {{"gpus", std::to_string(gpus)}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
}

// Textbook: 2 (n - 1) steps, each the latency and an n-th of the buffer.
TEST(RingEngine, AllReduceCostsTwoTimesAroundTheRing) {
  EXPECT_NEAR(finish_us(ring_engine(), one_way_ring(5), all_reduce(one_way_ring(5), 5)), 2 * 4 * (1 + 200.0),
              1e-6);
  // Through the switch every step has two latencies.
  EXPECT_NEAR(finish_us(ring_engine(), star(4), all_reduce(star(4), 4)), 2 * 3 * (2 + 250.0), 1e-6);
}

TEST(RingEngine, BothWaysRoundTakeHalfOfTheDataEach) {
  const Fabric ring = generated("ring", {{"gpus", "4"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
  EXPECT_NEAR(finish_us(ring_engine(), ring, all_reduce(ring, 8)), 2 * 3 * (1 + 125.0), 1e-6);
  EXPECT_NEAR(finish_us(ring_engine(), ring, named(Collective::allgather, ring, 2)), 3 * (1 + 125.0), 1e-6);
}

// NCCL on a DGX-1, as SCCL's Table 3 has it: (48, 14, 14). Chunks that follow one another hide latency: of
// the 14 steps each takes six chunks at six links' bandwidth, and the last one's latency is seen at least.
TEST(RingEngine, OnADgx1SixRingsTakeASixthEach) {
  const Fabric dgx1 = std::make_shared<const Topology>(TopologyData{
      "dgx1",
      "",
      std::vector<Node>(8),
      [] {
        std::vector<Link> links;
        const auto pair = [&](int a, int b, double GBps) {
          links.push_back(link(a, b, GBps, 0.7));
          links.push_back(link(b, a, GBps, 0.7));
        };
        for (const auto& [a, b] :
             std::vector<std::pair<int, int>>{{0, 1}, {1, 3}, {3, 2}, {2, 6}, {6, 7}, {7, 5}, {5, 4}, {4, 0}})
          pair(a, b, 50);
        for (const auto& [a, b] :
             std::vector<std::pair<int, int>>{{0, 2}, {0, 3}, {1, 2}, {1, 5}, {3, 7}, {4, 6}, {4, 7}, {5, 6}})
          pair(a, b, 25);
        return links;
      }(),
      {}});
  const Demand demand = make_demand(Collective::allreduce, 1e9, 8, 48);
  const double volume_us = 14.0 / 48 * 1e9 / 25e3;
  const double finish = finish_us(ring_engine(), dgx1, demand);
  EXPECT_LE(finish, volume_us + 14 * 0.7 + 1e-6);
  EXPECT_GE(finish, volume_us + 0.7);
}

TEST(Rings, GoThroughAllMembersOverDistinctLinksAndStopWhereNoneIsLeft) {
  const Fabric torus = generated("torus", {{"dims", "4x4"}});
  const HopTable hops(*torus);
  std::vector<GpuId> members;
  for (int g = 0; g < 16; ++g) members.push_back(GpuId{g});
  const std::vector<Ring> rings = find_rings(*torus, hops, members, 16);
  ASSERT_GE(rings.size(), 2U);
  std::set<LinkId> used;
  for (const Ring& ring : rings) {
    EXPECT_EQ(std::set<int>(ring.order.begin(), ring.order.end()).size(), 16U);
    for (std::size_t i = 0; i < 16; ++i) {
      const Hop& hop = hops.hop(ring.hops[i]);
      EXPECT_EQ(hop.src.value, ring.order[i]);
      EXPECT_EQ(hop.dst.value, ring.order[(i + 1) % 16]);
      EXPECT_TRUE(used.insert(hop.links.front().link).second);
    }
  }
  EXPECT_EQ(find_rings(*torus, hops, members, 1).size(), 1U);
}

TEST(RingEngine, SaysThatThereIsNoRing) {
  const Fabric mesh = generated("mesh", {{"dims", "3x3"}});  // an odd number of squares in two colours
  expect_error(ExitCode::unavailable, {"ring", "9 GPUs", "mesh-3x3", "--engine"},
               [&] { finish_us(ring_engine(), mesh, all_reduce(mesh, 9)); });
  expect_error(ExitCode::unavailable, {"ring", "alltoall", "--engine auto"},
               [&] { finish_us(ring_engine(), full(4), named(Collective::alltoall, full(4))); });
}

// Two steps in which every link carries one n-th of the buffer; on a star a GPU's link carries n - 1 of them.
TEST(DirectEngine, TakesOneStepForCopiesAndTwoForSums) {
  EXPECT_NEAR(finish_us(direct_engine(), full(4), all_reduce(full(4), 4)), 2 * (1 + 250.0), 1e-6);
  EXPECT_NEAR(finish_us(direct_engine(), full(4), named(Collective::alltoall, full(4))), 1 + 250.0, 1e-6);
  EXPECT_NEAR(finish_us(direct_engine(), star(4), all_reduce(star(4), 4)), 2 * (2 + 3 * 250.0), 1e-6);
  EXPECT_NEAR(finish_us(direct_engine(), star(4), named(Collective::alltoall, star(4))), 2 + 3 * 250.0, 1e-6);
  EXPECT_NEAR(finish_us(direct_engine(), star(4), named(Collective::allgather, star(4))), 2 + 3 * 250.0,
              1e-6);
}

TEST(DirectEngine, GoesOverOtherGpusWhereNoHopLeads) {
  const Fabric ring = one_way_ring(3);
  // From 0 to 2 over 1: each link carries both its own pair's part and half of the way of another's.
  EXPECT_NEAR(finish_us(direct_engine(), ring, named(Collective::alltoall, ring)), 3 * 1000.0 / 3 + 1, 1.0);
  EXPECT_NEAR(finish_us(direct_engine(), ring, named(Collective::allgather, ring)), 2 * (1 + 1000.0 / 3),
              1e-6);
}

// Distances 1 and 2: own data first, then the neighbour's. On a star the link of each GPU carries all three
// parts without a pause, though the textbook waits for each step: 3/4 of the buffer and 2 to 4 latencies.
TEST(RecursiveEngine, DoublesWhatEveryGpuHas) {
  EXPECT_NEAR(finish_us(recursive_engine(), star(4), named(Collective::allgather, star(4))), 2 + 3 * 250.0,
              1e-6);
  const double sums = finish_us(recursive_engine(), star(4), all_reduce(star(4), 4));
  EXPECT_LE(sums, 2 * 3 * 250.0 + 4 * 2 + 1e-6);
  EXPECT_GE(sums, 2 * 3 * 250.0 + 2 * 2 - 1e-6);
}

TEST(RecursiveEngine, FoldsGpusBeyondAPowerOfTwo) {
  const double finish = finish_us(recursive_engine(), star(6), all_reduce(star(6), 6));
  // Parts that a link carries in each step: 1 into the core, 2 and 4 within, 5 out of it.
  EXPECT_LE(finish, 2 * (1 + 2 + 4 + 5) * 1000.0 / 6 + 8 * 2);
  EXPECT_GE(finish, 2 * (2 + 4 + 5) * 1000.0 / 6);
}

// Of 4 GPUs every part goes 1, 2 or 3 = 1 + 2 further: each link of the star carries 4 of them.
TEST(BruckEngine, SendsByTheBitsOfTheDistance) {
  const double finish = finish_us(bruck_engine(), star(4), named(Collective::alltoall, star(4)));
  EXPECT_GE(finish, 4 * 250.0 + 2);
  EXPECT_LE(finish, 4 * 250.0 + 2 * 2 + 1e-6);
  EXPECT_NEAR(finish_us(bruck_engine(), star(5), named(Collective::allgather, star(5))), 2 + 4 * 200.0, 4.0);
}

// Member 0 is the root of one tree, 3 of the other, each two levels deep; no two of their messages meet.
TEST(TreeEngine, ReducesAndSpreadsHalfOfTheDataAlongEachTree) {
  EXPECT_NEAR(finish_us(tree_engine(), full(4), all_reduce(full(4), 2)), 4 * (1 + 500.0), 1e-6);
  // The root feeds trees over the other three: 1, 3, 2 and 2, 1, 3 one after another.
  EXPECT_NEAR(finish_us(tree_engine(), full(4), named(Collective::broadcast, full(4), 2)), 3 * (1 + 500.0),
              1e-6);
  expect_error(ExitCode::unavailable, {"tree", "Broadcast, Reduce and AllReduce"},
               [&] { finish_us(tree_engine(), full(4), named(Collective::allgather, full(4))); });
}

// Every GPU but one passes data on in one tree at most, whatever their number.
TEST(TreeEngine, LeavesOfOneTreeAreInnerNodesOfTheOther) {
  for (const int gpus : {3, 4, 7, 8, 13}) {
    const Fabric fabric = star(gpus);
    const double finish = finish_us(tree_engine(), fabric, all_reduce(fabric, 64));
    // Up and down, each GPU's link carries the buffer about twice.
    EXPECT_LE(finish, 2 * 1000.0 * 1.5) << gpus;
  }
}

// 2 x 2: within the chassis two parts of four, between them one; both before and after the sums are whole.
TEST(HierarchicalEngine, GoesBetweenChassisAlongGpusOfOnePlace) {
  std::vector<Node> nodes(4);
  for (int g = 0; g < 4; ++g) nodes[static_cast<std::size_t>(g)].chassis = g / 2;
  const Fabric chassis = fabric(nodes, {link(0, 1), link(1, 0), link(2, 3), link(3, 2), link(0, 2, 0.5),
                                        link(2, 0, 0.5), link(1, 3, 0.5), link(3, 1, 0.5)});
  const double finish = finish_us(hierarchical_engine(), chassis, all_reduce(chassis, 4));
  EXPECT_LE(finish, 2 * ((1 + 2 * 250.0) + (1 + 500.0)) + 1e-6);
  EXPECT_GE(finish, 2 * (1 + 250.0 + 1 + 500.0) - 1e-6);
  // Two of three parts cross, each along the place of its destination.
  EXPECT_NEAR(finish_us(hierarchical_engine(), chassis, named(Collective::alltoall, chassis)), 2 * 500.0 + 1,
              252);
  expect_error(ExitCode::unavailable, {"hierarchical", "chassis", "--engine direct"},
               [&] { finish_us(hierarchical_engine(), full(4), all_reduce(full(4), 4)); });
}

// A chunk that goes to 2 over 1 is at 1 then: it need not be sent there again, and sums likewise.
TEST(KnownAlgorithm, GpusOnTheWayTakePart) {
  const Fabric line = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 0), link(1, 2), link(2, 1)});
  EXPECT_NEAR(finish_us(direct_engine(), line, named(Collective::broadcast, line)), 2 * (1 + 1000.0), 1e-6);
  EXPECT_NEAR(finish_us(direct_engine(), line, all_reduce(line, 1)), 4 * (1 + 1000.0), 1e-6);
}

TEST(KnownAlgorithm, AllDoWhatTheyAreForOnManyFabrics) {
  for (const Fabric& topology :
       {full(5), star(6), star(4, Forwarding::store_and_forward), generated("mesh", {{"dims", "3x4"}}),
        generated("rails", {{"boxes", "2"}}), one_way_ring(6)}) {
    for (const EngineInfo& engine : {tree_engine(), direct_engine(), recursive_engine(), bruck_engine()}) {
      EXPECT_GT(finish_us(engine, topology, all_reduce(topology, 24)), 0);
      EXPECT_GT(finish_us(engine, topology, named(Collective::broadcast, topology, 3)), 0);
      if (engine.name != "tree") {
        EXPECT_GT(finish_us(engine, topology, named(Collective::allgather, topology, 2)), 0);
      }
    }
    for (const EngineInfo& engine : {direct_engine(), bruck_engine()})
      EXPECT_GT(finish_us(engine, topology, named(Collective::alltoall, topology)), 0);
    EXPECT_GT(finish_us(ring_engine(), topology, all_reduce(topology, 24)), 0);
  }
}

TEST(Binomial, HalvesTheDistance) {
  const StepMessages messages = binomial(1, 5);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].from, 1);
  EXPECT_EQ(messages[0].to, 0);  // four after 1, around
  int steps = 0;
  for (const StepMessage& m : messages) steps = std::max(steps, m.step + 1);
  EXPECT_EQ(steps, 3);
}

// Who meets whom: 1 us and 1 us for the bytes of each level.
TEST(ExchangeEngine, SumsUpInAsManyLevelsAsItTakes) {
  const Demand of_eight = make_demand(Collective::allreduce, 1000, 8, 1);
  EXPECT_NEAR(finish_us(exchange_engine(), full(8), of_eight, "doubling"), 3 * 2.0, 1e-9);
  EXPECT_NEAR(finish_us(exchange_engine(), full(8), of_eight, "multiplying"), 2.0, 1e-9);
  // A line of four: 0 -> 1 and 3 -> 2, 1 <-> 2, 1 -> 0 and 2 -> 3.
  const Fabric line = fabric({gpu(), gpu(), gpu(), gpu()},
                             {link(0, 1), link(1, 0), link(1, 2), link(2, 1), link(2, 3), link(3, 2)});
  EXPECT_NEAR(finish_us(exchange_engine(), line, make_demand(Collective::allreduce, 1000, 4, 1)), 3 * 2.0,
              1e-4);
}

// The line of four again, by numbers that do not follow one another: 0 - 2 - 1 - 3.
TEST(ExchangeEngine, GroupsWhoIsNearWhateverTheNumbers) {
  const Fabric line = fabric({gpu(), gpu(), gpu(), gpu()},
                             {link(0, 2), link(2, 0), link(2, 1), link(1, 2), link(1, 3), link(3, 1)});
  EXPECT_NEAR(finish_us(exchange_engine(), line, make_demand(Collective::allreduce, 1000, 4, 1)), 3 * 2.0,
              1e-4);
}

// Of two pairs the first GPUs 0 and 2 have the sums, and links between them lead to 1 and 3. Each gets its
// own pair's sum within 1 us and 1 us for the bytes, and the other one just after that, which both of its
// links allow.
TEST(Exchange, BetweenPairsEndsAtTheirSecondOnes) {
  const Fabric pairs = fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(2, 3), link(0, 3), link(2, 1)});
  const HopTable hops(*pairs);
  std::vector<Contribution> sums(1);
  sums.front() = {.origin = GpuId{0}, .bytes = 1000, .destinations = {GpuId{1}, GpuId{3}}};
  sums.front().sources = {GpuId{0}, GpuId{2}};
  sums.front().reduce = true;
  const Demand demand(Collective::custom, 1000, 4, sums, 1);
  const auto schedule = exchange(
      {*pairs, hops, {{GpuId{0}, GpuId{1}, GpuId{2}, GpuId{3}}}, 1, demand, 0, /*in_pairs=*/true}, {2});
  ASSERT_TRUE(schedule);
  ASSERT_EQ(schedule->sends.size(), 4U);
  EXPECT_NEAR(schedule->finish_us, 2, 1e-4);
  for (const Send& send : schedule->sends) {
    const bool is_own = send.link == LinkId{0} || send.link == LinkId{1};
    EXPECT_EQ(send.op, is_own ? SendOp::copy : SendOp::reduce);
  }
}

TEST(ExchangeEngine, NeverSendsWhatHasBeenAddedToAlready) {
  // On a star seven messages leave a GPU one after another: the last ones start after the first have arrived,
  // so that groups of eight would count twice.
  const Demand large = make_demand(Collective::allreduce, 8000, 8, 1);
  EXPECT_GT(finish_us(exchange_engine(), star(8), large), 10);
  EXPECT_EQ(ordered_factorisations(12).size(), 8U);
}

TEST(ExchangeEngine, SaysWhereNoGroupsAreJoined) {
  const Fabric ring = one_way_ring(4);
  expect_error(ExitCode::unavailable, {"exchange", "groups", "--engine auto"},
               [&] { finish_us(exchange_engine(), ring, all_reduce(ring, 1)); });
  expect_error(ExitCode::unavailable, {"exchange", "AllReduce"},
               [&] { finish_us(exchange_engine(), full(4), named(Collective::allgather, full(4))); });
}

TEST(ExchangeEngine, IsOfferedWhereLatencyCounts) {
  EngineOptions options;
  options.bound_us = 100;
  const Fabric four = full(4);
  const auto applicable = [&](double bytes) {
    return exchange_engine().applicable({four, make_demand(Collective::allreduce, bytes, 4, 1)}, options);
  };
  EXPECT_TRUE(applicable(4e4));
  EXPECT_FALSE(applicable(6e4));
}

}  // namespace
}  // namespace rondo::test_known_algorithms
