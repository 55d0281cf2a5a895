// What goes together where messages cost: plans of joined transfers, their search, and `rondo solve`.

#include <gtest/gtest.h>

#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
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
  ASSERT_TRUE(JoinedPlacing(space).place(plan));
  EXPECT_DOUBLE_EQ(plan.quality.finish_us, 50);
  ASSERT_EQ(plan.transfers.size(), 3U);
  EXPECT_DOUBLE_EQ(plan.transfers[2].start_us, 30);
  const Schedule schedule = schedule_of(plan, space);
  expect_valid(*topology, space.demand, schedule);
  // Read back it is the same plan.
  PlanSpace again = space;
  const auto read = joined_plan_of(schedule, again);
  ASSERT_TRUE(read);
  expect_same_sends(schedule_of(*read, again), schedule);
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
  expect_valid(*topology, space.demand, schedule_of(*plan, space));
}

TEST(JoinedPlan, WhatServesNothingIsLeftOut) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan plan;
  plan.add(kFirst, kBoth, 0);   // [0, 20)
  plan.add(kFirst, kOne, 1);    // there already
  plan.add(kSecond, kBoth, 2);  // [20, 40)
  ASSERT_TRUE(JoinedPlacing(space).place(plan));
  EXPECT_EQ(plan.transfers.size(), 2U);
  EXPECT_DOUBLE_EQ(plan.quality.finish_us, 40);
}

TEST(JoinedPlan, UnmetDemandIsNoPlan) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan plan;
  plan.add(kFirst, kBoth, 0);
  plan.add(kSecond, kOne, 1);
  EXPECT_FALSE(JoinedPlacing(space).place(plan));
}

TEST(Joining, EndsEarlierThanOneAfterAnother) {
  const auto topology = chain();
  const PlanSpace space = make_plan_space(*topology, two_chunks());
  JoinedPlan apart;
  for (const auto& chunk : {kOne, kOther}) apart.add(kFirst, chunk, 0);   // until 15 and 30
  for (const auto& chunk : {kOne, kOther}) apart.add(kSecond, chunk, 1);  // until 30 and 45
  ASSERT_TRUE(JoinedPlacing(space).place(apart));
  EXPECT_DOUBLE_EQ(apart.quality.finish_us, 45);
  const Schedule start = schedule_of(apart, space);
  const auto communicator = make_local_communicator();
  const Joining joining =
      join_transfers({*topology, space.demand, start, kAnyConcurrency, 0, 1e5}, *communicator);
  // Both together: 20 us on each link.
  ASSERT_TRUE(joining.schedule);
  EXPECT_DOUBLE_EQ(joining.schedule->finish_us, 40);
  expect_valid(*topology, space.demand, *joining.schedule);
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
