#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rondo/core/hop_timing.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"
#include "topologies.hpp"

/// Links whose bandwidth changes: by hand, and against the replay.
namespace rondo::test_hop_timing {
namespace {

/// GPU 0 -> switch 2 -> GPU 1, 1 us each; 1e3 bytes take 1 us at 1 GB/s. The first link has the steps, the
/// second 2 GB/s.
Topology through_switch(std::vector<BandwidthStep> steps, Forwarding forwarding = Forwarding::cut_through,
                        double message_us = 0) {
  Link first = link(0, 2, steps.front().GBps);
  first.bandwidth_steps = std::move(steps);
  first.message_us = message_us;
  return Topology(
      TopologyData{"steps", "", {gpu(), gpu(), network_switch(forwarding)}, {first, link(2, 1, 2)}});
}

Hop whole_hop(const Topology& topology) {
  return make_hop(topology, std::vector<LinkId>{LinkId{0}, LinkId{1}});
}

void expect_uses(const HopTiming& timing, const std::vector<std::pair<double, double>>& uses,
                 double arrival_us) {
  ASSERT_EQ(timing.uses.size(), uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    EXPECT_NEAR(timing.uses[i].start_us, uses[i].first, 1e-9) << i;
    EXPECT_NEAR(timing.uses[i].end_us, uses[i].second, 1e-9) << i;
  }
  EXPECT_NEAR(timing.arrival_us, arrival_us, 1e-9);
}

TEST(HopTiming, BytesFlowAtWhatThereIs) {
  // 4 us at 1 GB/s, the other 6e3 bytes at 0.5 GB/s.
  const Topology topology = through_switch({{0, 1}, {10, 0.5}});
  const Hop hop = whole_hop(topology);
  EXPECT_TRUE(hop.changes);
  expect_uses(timing_from(topology, hop, 1e4, 6), {{6, 22}, {7, 23}}, 24);
  expect_uses(timing_until(topology, hop, 1e4, 24), {{6, 22}, {7, 23}}, 24);
  expect_uses(timing_from(topology, hop, 1e4, 20), {{20, 40}, {21, 41}}, 42);
}

TEST(HopTiming, WaitsWhileALinkIsDown) {
  const Topology topology = through_switch({{0, 1}, {10, 0}, {30, 1}}, Forwarding::cut_through, 0.5);
  const Hop hop = whole_hop(topology);
  // The message cost passes while the link is down.
  expect_uses(timing_from(topology, hop, 4e3, 8), {{8, 32.5}, {9, 33.5}}, 34.5);
  expect_uses(timing_from(topology, hop, 4e3, 15), {{15, 34}, {16, 35}}, 36);
  expect_uses(timing_until(topology, hop, 4e3, 36), {{29.5, 34}, {30.5, 35}}, 36);
  EXPECT_DOUBLE_EQ(up_from(topology, hop, 8), 8);
  EXPECT_DOUBLE_EQ(up_from(topology, hop, 15), 29.5);
}

TEST(HopTiming, NeverEndsOnALinkThatStaysDown) {
  const Topology topology = through_switch({{0, 1}, {10, 0}});
  const Hop hop = whole_hop(topology);
  EXPECT_DOUBLE_EQ(timing_from(topology, hop, 4e3, 6).arrival_us, 12);
  EXPECT_FALSE(std::isfinite(timing_from(topology, hop, 4e3, 6.5).arrival_us));
  EXPECT_FALSE(std::isfinite(up_from(topology, hop, 11)));
  expect_uses(timing_until(topology, hop, 4e3, 100), {{6, 10}, {7, 11}}, 12);
  LinkTimetable timetable(topology);
  std::vector<Send> sends;
  timetable.reserve(hop, ChunkId{0}, 2e3, 5, sends);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 3e3, 0), 7);
  EXPECT_FALSE(std::isfinite(timetable.earliest_start(hop, 4e3, 0)));
}

TEST(HopTiming, ASwitchThatStoresBeginsAtTheArrival) {
  const Topology topology = through_switch({{0, 1}, {2, 0.5}}, Forwarding::store_and_forward);
  const Hop hop = whole_hop(topology);
  // 2 us and 4 us, then 2 us at 2 GB/s.
  expect_uses(timing_from(topology, hop, 4e3, 0), {{0, 6}, {7, 9}}, 10);
  expect_uses(timing_until(topology, hop, 4e3, 10), {{0, 6}, {7, 9}}, 10);
}

TEST(HopTiming, TheReplayAgrees) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    std::vector<BandwidthStep> steps{{0, 0.25 + random.unit()}};
    for (std::size_t more = random.below(4); more > 0; --more)
      steps.push_back(
          {steps.back().from_us + 0.1 + 5 * random.unit(), random.below(4) == 0 ? 0 : 0.1 + random.unit()});
    if (steps.back().GBps == 0) steps.back().GBps = 1;
    const Topology topology =
        through_switch(steps, random.below(2) == 0 ? Forwarding::cut_through : Forwarding::store_and_forward,
                       random.below(2) == 0 ? 0 : random.unit());
    const double bytes = 1e3 * (1 + 9 * random.unit());
    const Demand demand(Collective::custom, bytes, 2,
                        {Contribution{.origin = GpuId{0}, .bytes = bytes, .destinations = {GpuId{1}}}}, 1);
    std::vector<Send> sends;
    append_sends(topology, whole_hop(topology), ChunkId{0}, bytes, 8 * random.unit(), sends);
    const ReplayResult replayed = replay(topology, demand, sends);
    ASSERT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_DOUBLE_EQ(replayed.finish_us, sends.back().arrival_us);
    // Made on what never changes, timed anew: the same from time 0.
    const Topology constant = through_switch({{0, 1}}, topology.node(NodeId{2}).forwarding);
    std::vector<Send> before;
    append_sends(constant, whole_hop(constant), ChunkId{0}, bytes, 0, before);
    Schedule anew = retimed({constant, before}, topology, demand);
    const ReplayResult timed = replay(topology, demand, anew.sends);
    ASSERT_TRUE(timed.valid()) << *timed.violation;
    EXPECT_NEAR(timed.finish_us, timing_from(topology, whole_hop(topology), bytes, 0).arrival_us, 1e-9);
  }
}

}  // namespace
}  // namespace rondo::test_hop_timing
