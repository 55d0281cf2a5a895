#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo multicast_engine();
}  // namespace rondo

namespace rondo::test_multicast {
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
  Schedule schedule = *multicast_engine().prepare({topology, demand}, {}, {})(demand, {}).schedule;
  const ReplayResult replayed = replay(*topology, demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, schedule.finish_us, 1e-6);
  return schedule;
}

// 250 us a contribution: into each leaf two of them, then two within it at once, 2 us instead of 4 away.
TEST(MulticastEngine, ReachesALeafAtOnce) {
  const auto leaves = two_leaves(true);
  const Demand demand = make_demand(Collective::allgather, kMB, 4, 1);
  EXPECT_TRUE(multicast_engine().applicable({leaves, demand}, {}));
  const Schedule schedule = schedule_by(leaves, demand);
  EXPECT_EQ(schedule.sends.size(), 4U * (3 + 2) + 4 * 2);
  EXPECT_NEAR(schedule.finish_us, 3 * 250 + 4, 1e-6);
}

TEST(MulticastEngine, UplinksOfTwiceTheBandwidthCarryTwoAtATime) {
  const auto tree = std::make_shared<const Topology>(generate_topology(
      "fat_tree", {{"leaves", "3"}, {"gpus", "4"}, {"spines", "1"}, {"uplink_GBps", "100"}}));
  const Schedule schedule = schedule_by(tree, make_demand(Collective::allgather, kMB, 12, 2));
  EXPECT_EQ(schedule.sends.size(), 24U * (2 * (3 + 4) + 3 * 2));
}

TEST(MulticastEngine, RefusesWhatSwitchesDoNotReach) {
  const auto leaves = two_leaves(false);
  const Demand demand = make_demand(Collective::allgather, kMB, 4, 1);
  EXPECT_FALSE(multicast_engine().applicable({leaves, demand}, {}));
  expect_error(ExitCode::unavailable, {"GPU 2", "not reached", "GPU 0"},
               [&] { schedule_by(leaves, demand); });
}

}  // namespace
}  // namespace rondo::test_multicast
