#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "expect_error.hpp"
#include "rondo/core/retimer.hpp"
#include "rondo/core/retiming.hpp"
#include "same_sends.hpp"
#include "sum_schedules.hpp"
#include "topologies.hpp"

namespace rondo::test_retiming {
namespace {

TEST(Retiming, ClosesGapsInTheOrderOfTheSends) {
  Fabric fabric(3);
  fabric.link(0, 1, 1, 1);
  fabric.link(1, 2, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {2}), part(0, kUs, {1})});
  // Chunk 1 goes before chunk 0, and both wait.
  const std::vector<Send> sends = {send(1, 0, 4, 5, 6), send(0, 0, 7, 8, 9), send(0, 1, 20, 21, 22)};
  const Schedule earlier = retimed({topology, sends}, topology, demand);
  EXPECT_EQ(finish_of(topology, demand, earlier), 5);
  EXPECT_EQ(earlier.sends[0].chunk, ChunkId{1});
  EXPECT_EQ(earlier.sends[0].start_us, 0);
}

TEST(Retiming, KeepsTransfersThroughSwitchesTogether) {
  Fabric fabric(3);
  const int hub = fabric.cut_through();
  fabric.link(0, hub, 1, 1);
  fabric.link(hub, 1, 1, 1);
  fabric.link(hub, 2, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {1, 2})});
  const std::vector<Send> sends = {send(0, 0, 5, 6, 7), send(0, 1, 6, 7, 8), send(0, 2, 6, 7, 8)};
  EXPECT_EQ(finish_of(topology, demand, retimed({topology, sends}, topology, demand)), 3);
}

// Two starts differ by a rounding error, which is gone 300 us later: they stand as files ask for it, by
// links.
TEST(Retiming, SortsDelayedSendsThatNowStartTogether) {
  const double sum_us = 0.1 + 0.2;
  ASSERT_LT(0.3, sum_us);
  ASSERT_EQ(0.3 + 300, sum_us + 300);
  Schedule schedule{{send(0, 1, 0.3, 1.3, 2.3), send(1, 0, sum_us, 1.3, 2.3)}};
  delay(schedule, 300);
  EXPECT_EQ(schedule.sends[0].link, LinkId{0});
  EXPECT_EQ(schedule.sends[1].link, LinkId{1});
  for (const Send& sent : schedule.sends) {
    EXPECT_EQ(sent.start_us, 300.3);
    EXPECT_EQ(sent.end_us, 301.3);
    EXPECT_EQ(sent.arrival_us, 302.3);
  }
}

// Textbook sums around a ring of four: 6 steps of a quarter each, on links half as fast twice as long.
TEST(Retiming, TimesSumsOnOtherFigures) {
  const auto ring = one_way_ring(4);
  const auto slow = std::make_shared<const Topology>(degrade(*ring, 1, 0.5, 0));
  const Demand demand = make_demand(Collective::allreduce, 4000, 4, 4);
  const ProvenSchedule textbook = in_rounds(*ring, demand, ring_sums(4, 1, true));
  EXPECT_EQ(finish_of(*ring, demand, retimed({*ring, textbook.schedule.sends}, *ring, demand)), 12);
  EXPECT_EQ(finish_of(*slow, demand, retimed({*ring, textbook.schedule.sends}, *slow, demand)), 18);
}

// GPU 0 sends two other chunks and then its part of a sum to GPU 2, 1 us each, before the parts of GPUs 1 and
// 2 come to it after 3 us. At ten times the size its part leaves after 20 us; theirs, which could be there
// after 12 us and would go to GPU 2 with it a second time, wait.
TEST(Retiming, HoldsPartsOfSumsBackThatWouldComeTooEarly) {
  Fabric fabric(3);
  fabric.link(0, 2);
  fabric.link(1, 0, 1, 2);
  fabric.link(1, 2);
  fabric.link(2, 0, 1, 2);
  const Topology topology = fabric.build();
  const auto sized = [&](double bytes) {
    return custom(topology,
                  {rondo::sum_of({0, 1, 2}, bytes, {0, 2}), part(0, bytes, {2}), part(0, bytes, {2})});
  };
  const std::vector<Send> sends = {send(1, 0, 0, 1),         send(2, 0, 1, 2),
                                   adding(send(0, 0, 2, 3)), adding(send(0, 1, 0, 1, 3)),
                                   adding(send(0, 2, 0, 1)), adding(send(0, 3, 0, 1, 3))};
  EXPECT_EQ(finish_of(topology, sized(kUs), retimed({topology, sends}, topology, sized(kUs))), 3);
  const Schedule larger = retimed({topology, sends}, topology, sized(10 * kUs));
  EXPECT_EQ(finish_of(topology, sized(10 * kUs), larger), 30);
  // So it is with what was found once for all sizes.
  const TimedSends before{topology, sends};
  Retimer retimer(before, topology, sized(kUs));
  for (const double bytes : {10 * kUs, kUs, 3 * kUs})
    expect_same_sends(retimer.at(sized(bytes)), retimed(before, topology, sized(bytes)));
}

TEST(Retiming, FindsLinksByTheirEnds) {
  Fabric from(2);
  from.link(0, 1);
  from.link(1, 0);
  from.link(0, 1);
  Fabric to(2);
  to.link(1, 0);
  to.link(0, 1);
  EXPECT_EQ(matching_links(from.build(), to.build()), (std::vector<LinkId>{LinkId{1}, LinkId{0}, LinkId{}}));
  Fabric other(3);
  other.link(0, 1);
  expect_error(ExitCode::bad_data, {"GPUs"}, [&] { matching_links(from.build(), other.build()); });
}

}  // namespace
}  // namespace rondo::test_retiming
