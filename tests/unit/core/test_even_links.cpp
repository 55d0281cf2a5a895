#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/even_links.hpp"
#include "rondo/core/group_limits.hpp"

namespace rondo::test_even_links {
namespace {

double rate(double GBps, const std::vector<double>& wider) {
  return even_rate_GBps(GBps, wider);
}

TEST(EvenLinks, ARateIsLoweredWhereWiderLinksGainMore) {
  // Of 48 GB/s one transfer at 25 takes 52 %, two at 24 all; of 50 both take at least 96 %.
  EXPECT_DOUBLE_EQ(rate(25, {48, 50}), 24);
  EXPECT_DOUBLE_EQ(rate(25, {50}), 25);
  EXPECT_DOUBLE_EQ(rate(25, {}), 25);
  // A slow link at 1.5 of 2 GB/s fills 3 GB/s, by two thirds otherwise: 75 against 67 %.
  EXPECT_DOUBLE_EQ(rate(2, {3}), 1.5);
  // At half of 4 GB/s it would lose a third, and now takes 75 % of them.
  EXPECT_DOUBLE_EQ(rate(3, {4}), 3);
  EXPECT_DOUBLE_EQ(rate(48, {50}), 48);
  // Three at 30 take 90 % of 100; a fourth would cost 17 %.
  EXPECT_DOUBLE_EQ(rate(30, {100}), 30);
}

/// GPUs 0 and 1 with links of 3 GB/s to their leaves, which two spines join at 2 GB/s; a link of 2 GB/s
/// between the GPUs besides. Links 0 to 5 lead from GPU 0 to GPU 1, the first and the last by the leaves.
Fabric two_spines() {
  Fabric fabric(2);
  const int left = fabric.cut_through();
  const int right = fabric.cut_through();
  fabric.link(0, left, 3);
  for (int i = 0; i < 2; ++i) {
    const int spine = fabric.cut_through();
    fabric.link(left, spine, 2);
    fabric.link(spine, right, 2);
  }
  fabric.link(right, 1, 3);
  fabric.link(0, 1, 2);
  return fabric;
}

TEST(EvenLinks, AreThoseThatTransfersPassTogetherWithWiderOnes) {
  const Topology topology = two_spines().build();
  const auto even = with_even_links(topology);
  ASSERT_TRUE(even);
  for (const int l : {1, 2, 3, 4}) EXPECT_DOUBLE_EQ(even->link(LinkId{l}).bandwidth_GBps, 1.5);
  for (const int l : {0, 5}) EXPECT_EQ(even->link(LinkId{l}).bandwidth_GBps, 3);
  EXPECT_EQ(even->link(LinkId{6}).bandwidth_GBps, 2);
  EXPECT_FALSE(with_even_links(*even));
}

TEST(EvenLinks, CountGroupsAsWiderOnes) {
  Fabric fabric(2);
  fabric.link(0, 1, 2);
  fabric.link(0, 1, 2);
  EXPECT_FALSE(with_even_links(fabric.build()));
  fabric.share({0, 1}, 3);
  const auto even = with_even_links(fabric.build());
  ASSERT_TRUE(even);
  for (const int l : {0, 1}) EXPECT_DOUBLE_EQ(even->link(LinkId{l}).bandwidth_GBps, 1.5);
}

TEST(EvenLinks, NothingWhereStoreAndForwardPartsThemOrBandwidthChanges) {
  Fabric parted(2);
  const int sw = parted.store_and_forward(1e6);
  parted.link(0, sw, 2);
  parted.link(sw, 1, 3);
  EXPECT_FALSE(with_even_links(parted.build()));
  Fabric changing = two_spines();
  changing.changing_link(1, 0, {{0, 1}, {5, 2}});
  EXPECT_FALSE(with_even_links(changing.build()));
  // The wider link leads to no GPU but over a slower one.
  Fabric dead_end(2);
  const int near = dead_end.cut_through();
  const int far = dead_end.cut_through();
  dead_end.link(0, near, 2);
  dead_end.link(near, 1, 2);
  dead_end.link(near, far, 3);
  dead_end.link(far, 1, 1);
  EXPECT_TRUE(with_even_links(dead_end.build()));  // its last link, before which 2 and 3 GB/s lie
}

TEST(EvenLinks, TransfersSideBySideFollowTheRulesWithTheirRates) {
  const Topology topology = two_spines().build();
  const Topology even = *with_even_links(topology);
  const Demand demand = custom(topology, {part(0, 1.5 * kUs, {1}), part(0, 1.5 * kUs, {1})});
  std::vector<Send> sends;
  for (const int chunk : {0, 1}) {
    for (const int l : {0, 1 + 2 * chunk, 2 + 2 * chunk, 5}) sends.push_back(send(chunk, l, 0, 1));
  }
  ASSERT_TRUE(replay(even, demand, sends).valid());
  EXPECT_FALSE(replay(topology, demand, sends).valid());
  set_rates(topology, even, demand, sends);
  expect_finish(topology, demand, sends, 1);
}

}  // namespace
}  // namespace rondo::test_even_links
