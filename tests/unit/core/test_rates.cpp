#include <gtest/gtest.h>

#include <cmath>

#include "by_hand.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/rate_divisors.hpp"
#include "rondo/core/usage_profile.hpp"

/// What fast links and groups carry beside each other.
namespace rondo::test_rates {
namespace {

TEST(UsageProfile, RoomIsWhereTheSumFits) {
  UsageProfile profile(3);
  profile.add(2, 6, 1);
  profile.add(4, 8, 1.5);  // 1, 2.5, 1.5 from 2, 4, 6 to 8
  EXPECT_DOUBLE_EQ(profile.room_from(0, 10, 0.5), 0);
  EXPECT_DOUBLE_EQ(profile.room_from(0, 4, 2), 0);
  EXPECT_DOUBLE_EQ(profile.room_from(0, 4.1, 2), 8);
  EXPECT_DOUBLE_EQ(profile.room_from(0, 4.1, 1.5), 6);
  EXPECT_TRUE(std::isinf(profile.room_from(0, 1, 3.1)));
  EXPECT_DOUBLE_EQ(profile.most_used(0, 2), 0);
  EXPECT_DOUBLE_EQ(profile.most_used(0, 4.5), 2.5);
  EXPECT_DOUBLE_EQ(profile.most_used(6, 9), 1.5);
}

TEST(UsageProfile, RoundingErrorsLeaveNoSteps) {
  UsageProfile profile(1);
  profile.add(0, 5, 1);
  profile.add(5 - 1e-12, 9, 1);
  EXPECT_DOUBLE_EQ(profile.most_used(0, 9), 1);
  EXPECT_DOUBLE_EQ(profile.room_from(1, 1, 0.1), 9);
  UsageProfile thirds(1);
  for (int i = 0; i < 3; ++i) thirds.add(0, 5, 1.0 / 3);
  EXPECT_DOUBLE_EQ(thirds.room_from(0, 1, 1e-6), 5);
  UsageProfile two_thirds(1);
  for (int i = 0; i < 2; ++i) two_thirds.add(0, 5, 1.0 / 3);
  EXPECT_DOUBLE_EQ(two_thirds.room_from(0, 1, 1.0 / 3), 0);
}

TEST(UsageProfile, NothingStartsInWhatIsForgotten) {
  UsageProfile profile(1);
  profile.add(0, 2, 1);
  profile.add(4, 6, 1);
  profile.forget(5);
  EXPECT_DOUBLE_EQ(profile.room_from(0, 1, 0.5), 6);
  EXPECT_DOUBLE_EQ(profile.room_from(0, 0.5, 0), 5);
}

/// GPUs 0, 1, 2 with links of 1 GB/s into switch 4, which leads to GPU 3 over link 3 at `out_GBps`.
Topology funnel(double out_GBps, double message_us = 0) {
  Fabric fabric(4);
  fabric.cut_through();
  for (int g = 0; g < 3; ++g) fabric.link(g, 4, 1, 0, message_us);
  fabric.link(4, 3, out_GBps, 0, message_us);
  return fabric.build();
}
Hop from(const Topology& topology, int gpu) {
  return make_hop(topology, std::vector{LinkId{gpu}, LinkId{3}});
}

TEST(Hop, TakesAShareOfAFasterLink) {
  const Topology topology = funnel(4);
  const Hop hop = from(topology, 0);
  EXPECT_DOUBLE_EQ(hop.links[0].share, 1);
  EXPECT_DOUBLE_EQ(hop.links[1].share, 0.25);
  EXPECT_DOUBLE_EQ(hop.links[1].load_us(kUs), 0.25);
  std::vector<Send> sends;
  append_sends(topology, hop, ChunkId{0}, kUs, 0, sends);
  for (const Send& send : sends) {
    EXPECT_EQ(send.transfer, kNoTransfer);
    EXPECT_FALSE(send.has_rate());
  }
}

TEST(Hop, SlowedHasARateAndANumber) {
  const Topology topology = funnel(4);
  const Hop hop = slowed(from(topology, 0), 2);
  EXPECT_DOUBLE_EQ(hop.duration_us(kUs), 2);
  EXPECT_DOUBLE_EQ(hop.links[0].share, 0.5);
  EXPECT_DOUBLE_EQ(hop.links[1].share, 0.125);
  std::vector<Send> sends;
  append_sends(topology, hop, ChunkId{0}, kUs, 0, sends);
  append_sends(topology, hop, ChunkId{1}, kUs, 0, sends);
  ASSERT_EQ(sends.size(), 4U);
  for (const Send& send : sends) {
    EXPECT_DOUBLE_EQ(send.rate_GBps, 0.5);
    EXPECT_DOUBLE_EQ(send.end_us, 2);
    EXPECT_EQ(send.transfer, send.chunk == ChunkId{0} ? 0 : 2);
  }
}

TEST(Hop, SeveralChunksGoTogether) {
  const Topology topology = funnel(4, 0.5);
  const std::vector<ChunkId> chunks{ChunkId{3}, ChunkId{5}};
  std::vector<Send> sends;
  append_sends(topology, from(topology, 0), chunks, 2 * kUs, 0, sends);
  ASSERT_EQ(sends.size(), 4U);
  for (const Send& send : sends) {
    EXPECT_EQ(send.transfer, 0);
    EXPECT_FALSE(send.has_rate());
    EXPECT_DOUBLE_EQ(send.end_us, 2.5);
  }
}

TEST(LinkTimetable, AFastLinkCarriesWhatItsBandwidthIs) {
  const Topology topology = funnel(2);
  LinkTimetable timetable(topology);
  std::vector<Send> sends;
  const auto start = [&](int gpu, double not_before_us) {
    const Hop hop = from(topology, gpu);
    const double t = timetable.earliest_start(hop, 4 * kUs, not_before_us);
    timetable.reserve(hop, ChunkId{gpu}, 4 * kUs, t, sends);
    return t;
  };
  EXPECT_DOUBLE_EQ(start(0, 0), 0);
  EXPECT_DOUBLE_EQ(start(1, 1), 1);
  EXPECT_DOUBLE_EQ(start(2, 1), 4);
  EXPECT_DOUBLE_EQ(start(0, 4), 5);
  EXPECT_DOUBLE_EQ(timetable.share_left(from(topology, 0).links[1], kUs, 8), 0.5);
  EXPECT_DOUBLE_EQ(timetable.share_left(from(topology, 0).links[0], kUs, 4), 1);  // carries one at a time
}

TEST(LinkTimetable, ConcurrencyBoundsTransfersOnALinkOfAGpu) {
  const Topology topology = funnel(3);
  std::vector<Send> sends;
  LinkTimetable timetable(topology, 2);
  for (int g = 0; g < 2; ++g) timetable.reserve(from(topology, g), ChunkId{g}, kUs, 0, sends);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(from(topology, 2), kUs, 0), 1);
  LinkTimetable any(topology);
  for (int g = 0; g < 2; ++g) any.reserve(from(topology, g), ChunkId{g}, kUs, 0, sends);
  EXPECT_DOUBLE_EQ(any.earliest_start(from(topology, 2), kUs, 0), 0);
}

TEST(LinkTimetable, MessagesOnAFastLinkGoOneAfterAnother) {
  const Topology topology = funnel(4, 0.5);
  std::vector<Send> sends;
  LinkTimetable timetable(topology);
  timetable.reserve(from(topology, 0), ChunkId{0}, kUs, 0, sends);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(from(topology, 1), kUs, 0), 0.5);
  EXPECT_DOUBLE_EQ(timetable.next_start_us(sends[1]), 0.5);
  EXPECT_DOUBLE_EQ(timetable.next_start_us(sends[0]), 1.5);
}

TEST(LinkTimetable, GroupsShareTheirBandwidth) {
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  fabric.share({0, 1}, 1);
  const Topology topology = fabric.build();
  LinkTimetable timetable(topology);
  std::vector<Send> sends;
  timetable.reserve(make_hop(topology, std::vector{LinkId{0}}), ChunkId{0}, 4 * kUs, 0, sends);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(make_hop(topology, std::vector{LinkId{1}}), kUs, 0), 4);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(slowed(make_hop(topology, std::vector{LinkId{1}}), 2), kUs, 0),
                   4);
}

TEST(RateDivisors, FillLinksThatTheRatesDoNotDivide) {
  const auto divisors = [](double out_GBps) {
    const Topology topology = funnel(out_GBps);
    const std::vector<Hop> hops{from(topology, 0)};
    return rate_divisors(hops, 8);
  };
  EXPECT_EQ(divisors(1), std::vector{1});
  EXPECT_EQ(divisors(2), std::vector{1});
  EXPECT_EQ(divisors(1.5), (std::vector{1, 2}));
  EXPECT_EQ(divisors(4.0 / 3), (std::vector{1, 3}));
  // 1, then 3 at halves, then 8 at fifths.
  EXPECT_EQ(divisors(1.6), (std::vector{1, 2, 5}));
}

}  // namespace
}  // namespace rondo::test_rates
