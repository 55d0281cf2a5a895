#include <gtest/gtest.h>

#include <array>

#include "by_hand.hpp"
#include "rondo/core/hops.hpp"

/// Hops from GPU 0 through switch 3 to GPUs 1 and 2, over links of 2, 1 and 0.5 GB/s with latencies of 0.3,
/// 0.2 and 0.1 us, for chunks that take 1 us at 1 GB/s.
namespace rondo::test_hops {
namespace {

const std::vector<LinkId> kPath = {LinkId{0}, LinkId{1}};
const std::vector<LinkId> kTree = {LinkId{0}, LinkId{1}, LinkId{2}};
const std::vector<int> kParents = {-1, 0, 0};

Topology fabric(Forwarding forwarding) {
  Fabric fabric(3);
  fabric.cut_through();
  fabric.link(0, 3, 2, 0.3);
  fabric.link(3, 1, 1, 0.2);
  fabric.link(3, 2, 0.5, 0.1);
  return with_switch_forwarding(fabric.build(), forwarding);
}

/// (start, end, arrival) of the sends of a chunk that starts at 10.
std::vector<std::array<double, 3>> times(const Topology& topology, const Hop& hop) {
  std::vector<Send> sends;
  append_sends(topology, hop, ChunkId{0}, kUs, 10, sends);
  std::vector<std::array<double, 3>> times;
  for (const Send& s : sends) times.push_back({s.start_us, s.end_us, s.arrival_us});
  return times;
}

void expect_times(const Topology& topology, const Hop& hop,
                  const std::vector<std::array<double, 3>>& expected) {
  const auto found = times(topology, hop);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(found[i][k], expected[i][k], 1e-12) << i << ", " << k;
  }
}

TEST(Hop, ThroughACutThroughSwitchRunsAtItsSlowestLink) {
  const Topology topology = fabric(Forwarding::cut_through);
  const Hop hop = make_hop(topology, kPath);
  EXPECT_EQ(hop.src, GpuId{0});
  EXPECT_EQ(hop.dst, GpuId{1});
  EXPECT_DOUBLE_EQ(hop.duration_us(kUs), 1.5);
  expect_times(topology, hop, {{10, 11, 11.3}, {10.3, 11.3, 11.5}});
}

TEST(Hop, ThroughAStoreAndForwardSwitchRunsAtTheRateOfEachLink) {
  const Topology topology = fabric(Forwarding::store_and_forward);
  const Hop hop = make_hop(topology, kPath);
  EXPECT_DOUBLE_EQ(hop.duration_us(kUs), 2);
  expect_times(topology, hop, {{10, 10.5, 10.8}, {10.8, 11.8, 12}});
}

TEST(Hop, OverATreeHasTheTimesOfItsBranches) {
  const Topology at_once = fabric(Forwarding::cut_through);
  expect_times(at_once, make_hop(at_once, kTree, kParents),
               {{10, 12, 12.3}, {10.3, 12.3, 12.5}, {10.3, 12.3, 12.4}});
  const Topology stored = fabric(Forwarding::store_and_forward);
  const Hop hop = make_hop(stored, kTree, kParents);
  EXPECT_EQ(hop.dst, GpuId{2});
  EXPECT_NEAR(hop.duration_us(kUs), 2.9, 1e-12);  // of the branch to GPU 2
  expect_times(stored, hop, {{10, 10.5, 10.8}, {10.8, 11.8, 12}, {10.8, 12.8, 12.9}});
}

TEST(Hop, PaysTheGreatestMessageCostOnceASection) {
  for (const bool is_whole : {true, false}) {
    Fabric made(2);
    made.cut_through();
    made.link(0, 2, 2, 0.3, 0.04);
    made.link(2, 1, 1, 0.2, 0.07);
    const auto forwarding = is_whole ? Forwarding::cut_through : Forwarding::store_and_forward;
    const Topology topology = with_switch_forwarding(made.build(), forwarding);
    const Hop hop = make_hop(topology, kPath);
    if (is_whole) {
      EXPECT_NEAR(hop.duration_us(kUs), 1.57, 1e-12);
      expect_times(topology, hop, {{10, 11.07, 11.37}, {10.3, 11.37, 11.57}});
    } else {
      EXPECT_NEAR(hop.duration_us(kUs), 2.11, 1e-12);
      expect_times(topology, hop, {{10, 10.54, 10.84}, {10.84, 11.91, 12.11}});
    }
  }
}

/// From 0 to 1 straight at 1 GB/s, over one switch at 1 GB/s and over two at 3 GB/s.
TEST(HopsFrom, HaveTheWidestPathThoughItHasMoreLinks) {
  Fabric fabric(2);
  const int near = fabric.cut_through();
  const int far = fabric.cut_through();
  fabric.link(0, 1, 1);
  fabric.link(0, near, 4);
  fabric.link(near, 1, 1);
  fabric.link(near, far, 3);
  fabric.link(far, 1, 5);
  const std::vector<Hop> hops = hops_from(fabric.build(), GpuId{0});
  ASSERT_EQ(hops.size(), 2U);
  EXPECT_EQ(hops[0].links.size(), 3U);
  EXPECT_DOUBLE_EQ(hops[0].us_per_byte * kUs, 1.0 / 3);
  EXPECT_EQ(hops[1].links.size(), 1U);
}

TEST(HopsFrom, HaveNoLongerPathThatIsNoWider) {
  Fabric fabric(3);
  const int over = fabric.cut_through();
  fabric.link(0, 1, 3);
  fabric.link(0, over, 4);
  fabric.link(over, 1, 3);
  fabric.link(0, 2, 9);  // a GPU is no switch
  fabric.link(2, 1, 9);
  const std::vector<Hop> hops = hops_from(fabric.build(), GpuId{0});
  ASSERT_EQ(hops.size(), 2U);
  for (const Hop& hop : hops) EXPECT_EQ(hop.links.size(), 1U);
}

}  // namespace
}  // namespace rondo::test_hops
