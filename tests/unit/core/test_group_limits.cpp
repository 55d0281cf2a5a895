#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/group_limits.hpp"

/// GPUs 0 and 1 over switch 2, links of 4, 3 and 2 GB/s, of which some share 1 GB/s.
namespace rondo::test_group_limits {
namespace {

Fabric fabric_of_two(double second_GBps = 3) {
  Fabric fabric(2);
  fabric.cut_through();
  fabric.link(0, 2, 4);
  fabric.link(2, 1, second_GBps);
  fabric.link(0, 1, 2);
  return fabric;
}

TEST(GroupLimits, LinksAreNoFasterThanAnyOfTheirGroups) {
  Fabric fabric = fabric_of_two();
  fabric.share({0, 2}, 2.5);
  fabric.share({0, 1}, 1);
  const auto within = within_groups(fabric.build());
  ASSERT_TRUE(within);
  EXPECT_EQ(within->link(LinkId{0}).bandwidth_GBps, 1);
  EXPECT_EQ(within->link(LinkId{1}).bandwidth_GBps, 1);
  EXPECT_EQ(within->link(LinkId{2}).bandwidth_GBps, 2);
  EXPECT_FALSE(within_groups(*within));
}

TEST(GroupLimits, NothingWhereGroupsHoldNoLinkBackOrBandwidthChanges) {
  Fabric fabric = fabric_of_two();
  EXPECT_FALSE(within_groups(fabric.build()));
  fabric.share({0, 1}, 4);
  EXPECT_FALSE(within_groups(fabric.build()));
  fabric.share({0, 1}, 1);
  fabric.changing_link(1, 0, {{0, 1}, {5, 2}});
  EXPECT_FALSE(within_groups(fabric.build()));
}

TEST(GroupLimits, SlowerTransfersGetTheirRateAndOthersStayAsTheyAre) {
  Fabric fabric = fabric_of_two();
  fabric.share({0}, 1);
  const Topology topology = fabric.build();
  const Topology within = *within_groups(topology);
  const Demand demand = custom(topology, {part(0, kUs, {1}), part(0, 2 * kUs, {1})});
  // Chunk 0 over the switch at 1 GB/s, chunk 1 over the link of 2 GB/s.
  std::vector<Send> sends{send(0, 0, 0, 1), send(0, 1, 0, 1), send(1, 2, 0, 1)};
  ASSERT_TRUE(replay(within, demand, sends).valid());
  EXPECT_FALSE(replay(topology, demand, sends).valid());

  set_rates(topology, within, demand, sends);
  EXPECT_EQ(sends[0].rate_GBps, 1);
  EXPECT_EQ(sends[1].rate_GBps, 1);
  EXPECT_NE(sends[0].transfer, kNoTransfer);
  EXPECT_EQ(sends[0].transfer, sends[1].transfer);
  EXPECT_FALSE(sends[2].has_rate());
  EXPECT_EQ(sends[2].transfer, kNoTransfer);
  const ReplayResult replayed = replay(topology, demand, sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_EQ(replayed.finish_us, 1);

  drop_rates(within, demand, sends);
  for (const Send& s : sends) EXPECT_FALSE(s.has_rate());
  EXPECT_TRUE(replay(within, demand, sends).valid());
}

TEST(GroupLimits, ATransferThatIsSlowAnywayNeedsNoRate) {
  Fabric fabric = fabric_of_two(1);
  fabric.share({0}, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {1})});
  std::vector<Send> sends{send(0, 0, 0, 1), send(0, 1, 0, 1)};
  set_rates(topology, *within_groups(topology), demand, sends);
  EXPECT_FALSE(sends[0].has_rate());
  EXPECT_TRUE(replay(topology, demand, sends).valid());
}

TEST(GroupLimits, RatesOfTheirOwnAreKept) {
  Fabric fabric = fabric_of_two();
  fabric.share({0}, 1);
  const Topology topology = fabric.build();
  const Topology within = *within_groups(topology);
  const Demand demand = custom(topology, {part(0, kUs, {1})});
  std::vector<Send> sends{at_rate(0.5, numbered(0, send(0, 0, 0, 2))),
                          at_rate(0.5, numbered(0, send(0, 1, 0, 2)))};
  set_rates(topology, within, demand, sends);
  drop_rates(within, demand, sends);
  EXPECT_EQ(sends[0].rate_GBps, 0.5);
  EXPECT_EQ(sends[1].rate_GBps, 0.5);
}

}  // namespace
}  // namespace rondo::test_group_limits
