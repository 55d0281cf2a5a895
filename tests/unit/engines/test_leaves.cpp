#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "expect_error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo leaves_engine();
}  // namespace rondo

namespace rondo::test_leaves {
namespace {

/// Two leaves of two GPUs below a spine; 1000 us a megabyte and 1 us of latency on every link.
std::shared_ptr<const Topology> two_leaves(bool multicast) {
  const Node copier{.kind = NodeKind::switch_, .multicast = multicast};
  std::vector<Link> links;
  for (const auto& [a, b] : {std::pair{0, 4}, {1, 4}, {2, 5}, {3, 5}, {4, 6}, {5, 6}}) {
    links.push_back(link(a, b));
    links.push_back(link(b, a));
  }
  return fabric({gpu(), gpu(), gpu(), gpu(), copier, copier, copier}, links);
}

Schedule schedule_by(const std::shared_ptr<const Topology>& topology, const Demand& demand) {
  Schedule schedule = *leaves_engine().prepare({topology, demand}, {}, {})(demand, {}).schedule;
  const ReplayResult replayed = replay(*topology, demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, schedule.finish_us, 1e-6);
  return schedule;
}

// 250 us a contribution: into each leaf two of them, then two within it at once, 2 us instead of 4 away.
TEST(LeavesEngine, ReachesALeafAtOnce) {
  const auto leaves = two_leaves(true);
  const Demand demand = make_demand(Collective::allgather, kMB, 4, 1);
  EXPECT_TRUE(leaves_engine().applicable({leaves, demand}, {}));
  const Schedule schedule = schedule_by(leaves, demand);
  EXPECT_EQ(schedule.sends.size(), 4U * (3 + 2) + 4 * 2);
  EXPECT_NEAR(schedule.finish_us, 3 * 250 + 4, 1e-6);
}

// What stays within a leaf arrives 2 us after it is sent, and the first that comes from the other one 4 us.
// Of a chunk each way that lasts 1 us two fit between them: 750 + 2 us are the least, for 3 x 250 into each
// GPU.
TEST(LeavesEngine, FillsTheBeginningWithWhatStaysWithinALeaf) {
  const auto leaves = two_leaves(true);
  EXPECT_LT(schedule_by(leaves, make_demand(Collective::allgather, kMB, 4, 250)).finish_us, 3 * 250 + 3.5);
}

// In turns: each GPU sends its own to the other leaf and within its own, then passes on what has come.
TEST(LeavesEngine, PassesOnWhereSwitchesDoNotCopy) {
  const auto leaves = two_leaves(false);
  const Demand demand = make_demand(Collective::allgather, kMB, 4, 1);
  EXPECT_TRUE(leaves_engine().applicable({leaves, demand}, {}));
  const Schedule schedule = schedule_by(leaves, demand);
  EXPECT_EQ(schedule.sends.size(), 4U * 4 + 2 * 4 * 2);
  // Into each GPU 3 x 250; uplinks carry two contributions one after another meanwhile.
  EXPECT_LT(schedule.finish_us, 4 * 250 + 10);
}

TEST(LeavesEngine, UplinksOfTwiceTheBandwidthCarryTwoAtATime) {
  const auto tree = std::make_shared<const Topology>(generate_topology(
      "fat_tree", {{"leaves", "3"}, {"gpus", "4"}, {"spines", "1"}, {"uplink_GBps", "100"}}));
  const Schedule schedule = schedule_by(tree, make_demand(Collective::allgather, kMB, 12, 2));
  EXPECT_EQ(schedule.sends.size(), 24U * (2 * (3 + 4) + 3 * 2));
}

TEST(LeavesEngine, PassesOnFromEachLeafToEachOther) {
  for (const char* uplink_GBps : {"50", "200"}) {
    const auto tree =
        std::make_shared<const Topology>(generate_topology("fat_tree", {{"leaves", "3"},
                                                                        {"gpus", "4"},
                                                                        {"spines", "2"},
                                                                        {"uplink_GBps", uplink_GBps},
                                                                        {"multicast", "false"}}));
    schedule_by(tree, make_demand(Collective::allgather, kMB, 12, 3));
  }
}

// Between leaves 2 us later than within one: 250 us of a contribution fit eight times into that in chunks of
// 1/1000; a number of chunks between powers of two that makes it a whole number of turns is found.
TEST(LeavesEngine, FindsChunksWhoseTurnsFitTheLatency) {
  const auto leaves = two_leaves(false);
  const auto counts_of = [](const std::shared_ptr<const Topology>& topology, double us, bool is_part) {
    return leaves_engine().finds_counts({topology, make_demand(Collective::allgather, us * 4000, 4, 1)},
                                        is_part);
  };
  // 20 us a contribution: in 40 chunks of half a microsecond four turns, in 20 two.
  const std::vector<int> counts = counts_of(leaves, 20, false);
  EXPECT_TRUE(std::ranges::binary_search(counts, 20));
  EXPECT_TRUE(std::ranges::binary_search(counts, 40));
  EXPECT_TRUE(std::ranges::none_of(counts, [](int chunks) { return chunks < 20; }));
  // In 16 and 32 chunks, which are tried anyway.
  EXPECT_TRUE(counts_of(leaves, 16, false).empty());
  // No turns where switches copy, unless the other half has them.
  EXPECT_TRUE(counts_of(two_leaves(true), 20, false).empty());
  EXPECT_EQ(counts_of(two_leaves(true), 20, true), counts);
}

TEST(LeavesEngine, IsNearerToTheBoundInThem) {
  const auto tree = std::make_shared<const Topology>(generate_topology(
      "fat_tree", {{"leaves", "4"}, {"gpus", "8"}, {"spines", "4"}, {"multicast", "false"}}));
  const Demand demand = make_demand(Collective::allgather, kMB, 32, 1);
  const std::vector<int> counts = leaves_engine().finds_counts({tree, demand}, false);
  ASSERT_FALSE(counts.empty());
  const auto finish_us = [&](int chunks) { return schedule_by(tree, demand.with_chunks(chunks)).finish_us; };
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(counts.front())));
  EXPECT_LT(finish_us(counts.front()), finish_us(power));
  EXPECT_LT(finish_us(counts.front()), finish_us(2 * power));
}

TEST(LeavesEngine, RefusesLeavesOfOtherSizesWhereSwitchesDoNotCopy) {
  std::vector<Link> links;
  for (const auto& [a, b] : {std::pair{0, 3}, {1, 3}, {2, 4}, {3, 4}}) {
    links.push_back(link(a, b));
    links.push_back(link(b, a));
  }
  const Node passes{.kind = NodeKind::switch_, .multicast = false};
  const auto uneven = fabric({gpu(), gpu(), gpu(), passes, passes}, links);
  const Demand demand = make_demand(Collective::allgather, kMB, 3, 1);
  EXPECT_FALSE(leaves_engine().applicable({uneven, demand}, {}));
  EXPECT_TRUE(leaves_engine().finds_counts({uneven, demand}, true).empty());
  expect_error(ExitCode::unavailable, {"leaves", "as many GPUs"}, [&] { schedule_by(uneven, demand); });
}

}  // namespace
}  // namespace rondo::test_leaves
