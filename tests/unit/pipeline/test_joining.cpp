// What goes together where messages cost: plans of joined transfers, their search, and `rondo solve`.

#include <gtest/gtest.h>

#include "joined_parts.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/local_search/joining.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_joining {
namespace {

std::shared_ptr<const Topology> with_message_costs(const Topology& topology, double message_us) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.message_us = message_us;
  return std::make_shared<const Topology>(std::move(data));
}

/// 0 -> 1 -> 2 at 1 GB/s without latency, a message costs 10 us.
std::shared_ptr<const Topology> chain() {
  return with_message_costs(*fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1, 0), link(1, 2, 1, 0)}), 10);
}
constexpr int kFirst = 0;  ///< hops of the chain
constexpr int kSecond = 1;
const std::vector<ChunkId> kBoth = {ChunkId{0}, ChunkId{1}};
const std::vector<ChunkId> kOne = {ChunkId{0}};
const std::vector<ChunkId> kOther = {ChunkId{1}};

/// Two chunks of 5 us.
Demand two_chunks() {
  return make_demand(Collective::broadcast, 10e3, 3, 2);
}

void expect_valid(const Topology& topology, const Demand& demand, const Schedule& schedule) {
  const ReplayResult replayed = replay(topology, demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, schedule.finish_us))
      << replayed.finish_us << " and " << schedule.finish_us;
}

TEST(JoinedPlan, ATransferStartsWithTheLastOfItsChunks) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan plan;
  plan.add(kFirst, kOne, 0);    // [0, 15)
  plan.add(kSecond, kBoth, 1);  // waits until 30, ends at 50
  plan.add(kFirst, kOther, 2);  // [15, 30)
  ASSERT_TRUE(JoinedPlacing(JoinedSpace(space)).place(plan));
  EXPECT_DOUBLE_EQ(plan.quality.finish_us, 50);
  ASSERT_EQ(plan.transfers.size(), 3U);
  EXPECT_DOUBLE_EQ(plan.transfers[2].start_us, 30);
  const Schedule schedule = schedule_of(plan, JoinedSpace(space));
  expect_valid(*topology, space.demand, schedule);
  // Read back it is the same plan.
  PlanSpace again = space;
  const auto read = joined_plan_of(schedule, again);
  ASSERT_TRUE(read);
  expect_same_sends(schedule_of(*read, JoinedSpace(again)), schedule);
}

TEST(JoinedPlan, OfTransfersWithRatesIsAsFastAsItsHops) {
  const auto topology = chain();
  PlanSpace space = make_plan_space(*topology, make_demand(Collective::broadcast, 5e3, 3, 1));
  Schedule slow;  // at half the rate: 20 us a hop
  for (const int l : {0, 1}) {
    slow.sends.push_back({.chunk = ChunkId{0},
                          .link = LinkId{l},
                          .start_us = 20.0 * l,
                          .end_us = 20.0 * (l + 1),
                          .arrival_us = 20.0 * (l + 1),
                          .transfer = l,
                          .rate_GBps = 0.5});
  }
  slow.finish_us = 40;
  expect_valid(*topology, space.demand, slow);
  const auto plan = joined_plan_of(slow, space);
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->quality.finish_us, 30);
  expect_valid(*topology, space.demand, schedule_of(*plan, JoinedSpace(space)));
}

TEST(JoinedPlan, WhatServesNothingIsLeftOut) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan plan;
  plan.add(kFirst, kBoth, 0);   // [0, 20)
  plan.add(kFirst, kOne, 1);    // there already
  plan.add(kSecond, kBoth, 2);  // [20, 40)
  ASSERT_TRUE(JoinedPlacing(JoinedSpace(space)).place(plan));
  EXPECT_EQ(plan.transfers.size(), 2U);
  EXPECT_DOUBLE_EQ(plan.quality.finish_us, 40);
}

TEST(JoinedPlan, UnmetDemandIsNoPlan) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan plan;
  plan.add(kFirst, kBoth, 0);
  plan.add(kSecond, kOne, 1);
  EXPECT_FALSE(JoinedPlacing(JoinedSpace(space)).place(plan));
}

TEST(Joining, EndsEarlierThanOneAfterAnother) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan apart;
  for (const auto& chunk : {kOne, kOther}) apart.add(kFirst, chunk, 0);   // until 15 and 30
  for (const auto& chunk : {kOne, kOther}) apart.add(kSecond, chunk, 1);  // until 30 and 45
  ASSERT_TRUE(JoinedPlacing(JoinedSpace(space)).place(apart));
  EXPECT_DOUBLE_EQ(apart.quality.finish_us, 45);
  const Schedule start = schedule_of(apart, JoinedSpace(space));
  const auto communicator = make_local_communicator();
  const FreeGroup identity = FreeGroup::trivial(*topology);
  JoiningTask task{*topology, space.demand, {{2, start}}, identity};
  task.work_limit = 1e5;
  const Joining joining = join_transfers(task, *communicator);
  // Both together: 20 us on each link.
  ASSERT_TRUE(joining.schedule);
  EXPECT_DOUBLE_EQ(joining.schedule->finish_us, 40);
  EXPECT_EQ(joining.chunks, 2);
  expect_valid(*topology, space.demand, *joining.schedule);
}

/// 0 -> 1 -> 2 -> 3 -> 0 at 1 GB/s without latency, a message costs 10 us.
std::shared_ptr<const Topology> ring() {
  return with_message_costs(*fabric({gpu(), gpu(), gpu(), gpu()},
                                    {link(0, 1, 1, 0), link(1, 2, 1, 0), link(2, 3, 1, 0), link(3, 0, 1, 0)}),
                            10);
}

/// Parts of 5 us each.
Demand allgather_of_ring(int chunks) {
  return make_demand(Collective::allgather, 20e3, 4, chunks);
}

TEST(JoinedSpace, OfARingHasOneHopAndAsManyPairsAsPartsOfAGpu) {
  const auto topology = ring();
  const Demand demand = allgather_of_ring(1);
  const FreeGroup turns = find_free_group(*topology, demand_pattern(demand));
  ASSERT_EQ(turns.order(), 4U);
  const auto space = JoinedSpace::up_to(turns, make_plan_space(*topology, demand));
  ASSERT_TRUE(space);
  EXPECT_EQ(space->num_pairs(), 4U);
  ASSERT_EQ(space->num_hops(), 4U);
  for (int h = 0; h < 4; ++h) {
    const auto [representative, element] = space->place_of_hop(h);
    EXPECT_EQ(representative, 0);
    const JoinedSpace::HopImage& there = space->images_of_hop(0).at(index(element));
    EXPECT_EQ(there.hop, h);
    EXPECT_EQ(there.src, GpuId{h});
    EXPECT_EQ(space->hop(h).links.front().link, LinkId{0});
    EXPECT_EQ(space->crossed(h).links.front().link, LinkId{h});
    const ChunkId image = space->image(ChunkId{0}, element);
    EXPECT_EQ(image, ChunkId{h});
    EXPECT_EQ(space->element_between(ChunkId{0}, image), element);
    EXPECT_EQ(space->pair(image, GpuId{h}), space->pair(ChunkId{0}, GpuId{0}));
  }
}

TEST(JoinedPlan, OfOneTransferAnOrbitIsThatOfAll) {
  const auto topology = ring();
  const Demand demand = allgather_of_ring(1);
  const FreeGroup turns = find_free_group(*topology, demand_pattern(demand));
  const auto space = JoinedSpace::up_to(turns, make_plan_space(*topology, demand));
  ASSERT_TRUE(space);
  JoinedPlan plan;
  plan.add(0, std::vector{ChunkId{0}}, 0);              // [0, 15), as all images
  plan.add(0, std::vector{ChunkId{3}, ChunkId{2}}, 1);  // once 2 is there, too late for 3 alone
  // 2 comes from 3, which has it when the image of the first transfer has ended, in the same transfer as
  // here.
  EXPECT_FALSE(JoinedPlacing(*space).place(plan));
  JoinedPlan in_turn;
  for (const int c : {0, 3, 2}) in_turn.add(0, std::vector{ChunkId{c}}, c);
  ASSERT_FALSE(in_turn.transfers.empty());
  ASSERT_TRUE(JoinedPlacing(*space).place(in_turn));
  EXPECT_DOUBLE_EQ(in_turn.quality.finish_us, 45);
  const Schedule all = schedule_of(in_turn, *space);
  EXPECT_EQ(all.sends.size(), 12U);
  expect_valid(*topology, demand, all);
  // Read back and folded it is the same plan.
  PlanSpace whole = make_plan_space(*topology, demand);
  const auto read = joined_plan_of(all, whole);
  ASSERT_TRUE(read);
  auto again = folded(*read, *space);
  ASSERT_TRUE(again && JoinedPlacing(*space).place(*again));
  expect_same_sends(schedule_of(*again, *space), all);
}

TEST(JoinedPlan, RepeatedBeginsAgainAsSoonAsTheBusiestLinkIsFree) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, make_demand(Collective::broadcast, 5e3, 3, 1));
  const JoinedSpace one(space);
  JoinedPlan plan;
  plan.add(kFirst, kOne, 0);    // [0, 15)
  plan.add(kSecond, kOne, 15);  // [15, 30)
  JoinedPlan twice = repeated(plan, 2, one);
  const PlanSpace halves = make_plan_space(*topology, two_chunks());
  ASSERT_TRUE(JoinedPlacing(JoinedSpace(halves)).place(twice));
  ASSERT_EQ(twice.transfers.size(), 4U);
  EXPECT_DOUBLE_EQ(twice.quality.finish_us, 45);
  const JoinedPlan first = of_first_chunks(twice, 2);
  ASSERT_EQ(first.transfers.size(), 2U);
  EXPECT_DOUBLE_EQ(first.transfers[1].start_us, 15);
}

/// 500 us a hop in one chunk, 1020 in all; in 2, 4, 8 chunks one after another 780, 675, 652.5.
TEST(Joining, TakesPartsOneAfterAnother) {
  const auto topology = chain();
  const Demand demand = make_demand(Collective::broadcast, 500e3, 3, 1);
  const JoinedSpace space(make_plan_space(*topology, demand));
  JoinedPlan plan;
  plan.add(kFirst, kOne, 0);
  plan.add(kSecond, kOne, 1);
  ASSERT_TRUE(JoinedPlacing(space).place(plan));
  const FreeGroup identity = FreeGroup::trivial(*topology);
  JoiningTask task{*topology, demand, {{1, schedule_of(plan, space)}}, identity};
  task.work_limit = 1e5;
  const auto communicator = make_local_communicator();
  EXPECT_FALSE(join_transfers(task, *communicator).schedule);
  task.most_chunks = 8;
  const Joining joining = join_transfers(task, *communicator);
  ASSERT_TRUE(joining.schedule);
  EXPECT_EQ(joining.chunks, 8);
  EXPECT_LE(joining.schedule->finish_us, 652.5);
  expect_valid(*topology, demand.with_chunks(8), *joining.schedule);
}

/// In a ring each part crosses three links: 45 us where each goes alone and none waits.
TEST(Joining, OfSymmetricPlansIsSymmetric) {
  const auto topology = ring();
  const Demand demand = allgather_of_ring(1);
  const FreeGroup turns = find_free_group(*topology, demand_pattern(demand));
  PlanSpace whole = make_plan_space(*topology, demand);
  JoinedPlan slow;  // one part after another
  for (int c = 0; c < 4; ++c) {
    for (int hop = 0; hop < 3; ++hop) slow.add((c + hop) % 4, std::vector{ChunkId{c}}, 100 * c + hop);
  }
  ASSERT_TRUE(JoinedPlacing(JoinedSpace(whole)).place(slow));
  EXPECT_GT(slow.quality.finish_us, 45);
  JoiningTask task{*topology, demand, {{1, schedule_of(slow, JoinedSpace(whole))}}, turns};
  task.work_limit = 1e5;
  const Joining joining = join_transfers(task, *make_local_communicator());
  ASSERT_TRUE(joining.schedule);
  EXPECT_DOUBLE_EQ(joining.schedule->finish_us, 45);
  expect_valid(*topology, demand, *joining.schedule);
}

SynthesisResult solve(const std::shared_ptr<const Topology>& topology, const Demand& demand, int chunks,
                      bool join) {
  SolveOptions options;
  options.join = join;
  options.chunks = chunks;
  options.engine = "list";
  options.improve_work = join ? 1e5 : 0;
  const auto communicator = make_local_communicator();
  SynthesisResult result = synthesize({topology, demand, options}, {.communicator = *communicator});
  expect_valid(*topology, result.proven.demand, result.proven.schedule);
  return result;
}

/// TACCL, NSDI 2023, section 4.1, with its Table 1 (106 us/MB, 1.7 us; here MB is 10^6 bytes): two chunks of
/// 32 KB over InfiniBand take 2 (1.7 + 3.392) us one after the other and 1.7 + 6.784 us together, 17 % less.
TEST(Joining, TwoChunksOverInfiniBand) {
  const auto pair = with_message_costs(*fabric({gpu(), gpu()}, {link(0, 1, 1000.0 / 106, 0)}), 1.7);
  const Demand demand = make_demand(Collective::broadcast, 64e3, 2, 1);
  const double apart_us = solve(pair, demand, 2, false).proven.schedule.finish_us;
  const double together_us = solve(pair, demand, 2, true).proven.schedule.finish_us;
  EXPECT_NEAR(apart_us, 10.184, 1e-6);
  EXPECT_NEAR(together_us, 8.484, 1e-6);
  EXPECT_NEAR(1 - together_us / apart_us, 0.17, 0.005);
}

}  // namespace
}  // namespace rondo::test_joining
