#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "expect_error.hpp"
#include "rondo/core/transposition.hpp"

namespace rondo::test_transposition {
namespace {

TEST(Transposition, TurnsLinksRoundAndExchangesCopyingAndAdding) {
  Fabric fabric(2);
  const int hub = fabric.cut_through(true, false);
  fabric.link(0, hub, 3, 0.5, 0.25);
  fabric.link(hub, 1);
  const Topology turned = transposed(fabric.build());
  EXPECT_EQ(turned.link(LinkId{0}).src, NodeId{hub});
  EXPECT_EQ(turned.link(LinkId{0}).dst, NodeId{0});
  EXPECT_EQ(turned.link(LinkId{0}).bandwidth_GBps, 3);
  EXPECT_EQ(turned.link(LinkId{0}).message_us, 0.25);
  EXPECT_FALSE(turned.node(NodeId{hub}).multicast);
  EXPECT_TRUE(turned.node(NodeId{hub}).reduce);
}

TEST(Transposition, MakesAnAllGatherOfAReduceScatter) {
  const Demand sums = make_demand(Collective::reduce_scatter, 3000, 3, 2);
  EXPECT_EQ(sums.kind(), DemandKind::reduction);
  const Demand spread = transposed(sums);
  EXPECT_EQ(spread.collective(), Collective::allgather);
  EXPECT_EQ(mismatch_with_collective(spread), std::nullopt);
  EXPECT_EQ(spread.num_chunks(), sums.num_chunks());
  EXPECT_EQ(transposed(make_demand(Collective::reduce, 10, 3, 1, GpuId{2})).origin(ChunkId{0}), GpuId{2});
}

TEST(Transposition, OfPairsSourceAndDestinationChangePlaces) {
  const Demand scatter =
      make_demand(Collective::scatter, 60, 3, 1, GpuId{1}, CollectiveShape{.counts = {10, 20, 30}});
  const Demand gather = transposed(scatter);
  EXPECT_TRUE(gather.is_unicast());
  ASSERT_EQ(gather.contributions().size(), 2U);
  EXPECT_EQ(gather.contributions()[1].origin, GpuId{2});
  EXPECT_EQ(gather.contributions()[1].destinations, std::vector{GpuId{1}});
  EXPECT_EQ(gather.contributions()[1].bytes, 30);
}

// 0 -> 1 -> 2 over links of 1 us latency; backwards 2 and then 1 add.
TEST(Transposition, RunsAChainBackwards) {
  Fabric fabric(3);
  fabric.link(1, 0, 1, 1);
  fabric.link(2, 1, 1, 1);
  const Topology topology = fabric.build();
  const Demand sums = custom(topology, {rondo::sum_of({0, 1, 2}, kUs, {0})});
  const Topology turned = transposed(topology);
  const Demand spread = transposed(sums);
  // The second send waits for no reason, which is kept.
  const std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 1, 3, 4, 5)};
  ASSERT_TRUE(replay(turned, spread, sends).valid());
  const std::vector<Send> backwards = reversed_in_time(turned, spread, sends, 5);
  ASSERT_EQ(backwards.size(), 2U);
  EXPECT_EQ(backwards[0].link, LinkId{1});
  EXPECT_EQ(backwards[0].op, SendOp::reduce);
  EXPECT_EQ(backwards[0].arrival_us, 2);
  EXPECT_EQ(backwards[1].start_us, 3);
  expect_finish(topology, sums, backwards, 5);
}

// GPU 0 sends a chunk twice at once to a switch that stores it and copies to 1 and 2, each from another of
// the two: backwards the sum of both leaves the switch once.
TEST(Transposition, WhatEntersAStoringSwitchTwiceLeavesItOnceBackwards) {
  Fabric fabric(3);
  const int hub = fabric.store_and_forward(0, false, true);
  fabric.link(hub, 0);
  fabric.link(hub, 0);
  fabric.link(1, hub);
  fabric.link(2, hub);
  const Topology topology = fabric.build();
  const Demand sums = custom(topology, {rondo::sum_of({1, 2}, kUs, {0})});
  const std::vector<Send> sends = {send(0, 0, 0, 1, 1), send(0, 1, 0, 1, 1), send(0, 2, 1, 2, 2),
                                   send(0, 3, 1, 2, 2)};
  ASSERT_TRUE(replay(transposed(topology), transposed(sums), sends).valid());
  const std::vector<Send> backwards = reversed_in_time(transposed(topology), transposed(sums), sends, 2);
  EXPECT_EQ(backwards.size(), 3U);
  expect_finish(topology, sums, backwards, 2);
}

// A switch copies 0's chunk to 1 and 2: backwards it adds theirs, in one numbered transfer.
TEST(Transposition, ASwitchThatCopiesAddsBackwards) {
  Fabric fabric(3);
  const int hub = fabric.cut_through(false, true);
  fabric.link(hub, 0, 1, 1);
  fabric.link(1, hub, 1, 1);
  fabric.link(2, hub, 1, 1);
  const Topology topology = fabric.build();
  const Demand sums = custom(topology, {rondo::sum_of({1, 2}, kUs, {0})});
  const std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 1, 1, 2, 3), send(0, 2, 1, 2, 3)};
  const std::vector<Send> backwards = reversed_in_time(transposed(topology), transposed(sums), sends, 3);
  for (const Send& s : backwards) {
    EXPECT_EQ(s.transfer, 0);
    EXPECT_EQ(s.op, SendOp::reduce);
  }
  expect_finish(topology, sums, backwards, 3);
}

TEST(Transposition, RefusesWhatIsNotTheSameBackwards) {
  Fabric changing(2);
  changing.changing_link(0, 1, {{0, 1}, {5, 2}});
  expect_error(ExitCode::unavailable, {"bandwidth_steps"}, [&] { transposed(changing.build()); });
  Fabric grouped(2);
  grouped.share({grouped.link(0, 1, 1, 1), grouped.link(1, 0, 1, 2)}, 1);
  expect_error(ExitCode::unavailable, {"'nic'"}, [&] { transposed(grouped.build()); });
  Contribution late = rondo::sum_of({0, 1}, kUs, {0});
  late.source_ready_us = {0, 3};
  Fabric plain(2);
  plain.link(1, 0);
  expect_error(ExitCode::unavailable, {"ready times"}, [&] { transposed(custom(plain.build(), {late})); });
}

}  // namespace
}  // namespace rondo::test_transposition
