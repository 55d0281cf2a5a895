#include <gtest/gtest.h>

#include <algorithm>

#include "fabrics.hpp"
#include "list/orbit_images.hpp"
#include "list/queue_scheduler.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo::test_queue {
namespace {

using Parameters = std::map<std::string, std::string>;

Demand allgather(const Topology& topology, double chunk_bytes, int chunks = 1) {
  const auto gpus = static_cast<double>(topology.num_gpus());
  return make_demand(Collective::allgather, gpus * chunks * chunk_bytes, topology.num_gpus(), chunks);
}

/// Schedules, replays and returns the finish time.
double finish_of(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                 const EngineOptions& options = {}) {
  const EngineResult result = prepare_queue({topology, demand}, options, {})(demand, options);
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us));
  Schedule sorted = *result.schedule;
  canonicalise(sorted);
  EXPECT_TRUE(std::ranges::equal(sorted.sends, result.schedule->sends, [](const Send& a, const Send& b) {
    return a.chunk == b.chunk && a.link == b.link && a.start_us == b.start_us;
  }));
  return replayed.finish_us;
}

EngineOptions without_symmetry(const std::string& policy = {}) {
  EngineOptions options;
  options.policy = policy;
  options.symmetry = false;
  return options;
}

TEST(Queue, RingOneWayPassesEveryChunkOn) {
  const auto ring = one_way_ring(4);
  // Three steps of 1000 us + 1 us; the link is free again after 1000 us, but the next chunk comes at 1001.
  EXPECT_DOUBLE_EQ(finish_of(ring, allgather(*ring, kMB)), 3003);
  EXPECT_DOUBLE_EQ(finish_of(ring, allgather(*ring, kMB), without_symmetry()), 3003);
}

TEST(Queue, StarMeetsTheDownlinkBound) {
  const auto star = fabric({gpu(), gpu(), gpu(), network_switch()},
                           {link(0, 3), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)});
  // Every downlink carries two chunks of 1000 us; then both latencies.
  EXPECT_DOUBLE_EQ(finish_of(star, allgather(*star, kMB)), 2002);
}

TEST(Queue, TorusMeetsItsBoundInWholeSteps) {
  const auto torus = generated("torus", {{"dims", "4x4"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  // 15 chunks over 4 links: 4 steps of 1000 us.
  EXPECT_DOUBLE_EQ(finish_of(torus, allgather(*torus, kMB)), 4000);
}

TEST(Queue, EveryPolicyMakesValidSchedules) {
  const auto whole = generated("torus", {{"dims", "4x4"}});
  const std::vector<std::shared_ptr<const Topology>> fabrics{
      whole,
      std::make_shared<const Topology>(degrade(*whole, 0.1, 0.3, 5)),
      generated("star", {{"chassis", "3"}, {"intra", "ndv2"}}),
      generated("rails", {{"boxes", "3"}, {"gpus", "4"}}),
      generated("dragonfly", {{"groups", "5"}, {"routers", "2"}}),
      generated("fat_tree", {}),
      std::make_shared<const Topology>(
          with_switch_forwarding(generate_topology("fat_tree", {}), Forwarding::store_and_forward))};
  for (const auto& topology : fabrics) {
    for (const std::string& policy : queue_policies()) {
      EngineOptions options;
      options.policy = policy;
      options.seed = 7;
      for (const int chunks : {1, 3}) {
        const Demand demand = allgather(*topology, 1e5, chunks);
        for (const bool symmetry : {true, false}) {
          options.symmetry = symmetry;
          finish_of(topology, demand, options);
        }
      }
    }
  }
}

TEST(Queue, ThinnedOutPeersStillReachAll) {
  // 40 GPUs behind one switch: of 39 peers those 1, 2, 4, ... numbers away remain.
  const auto star = generated("star", {{"chassis", "40"}, {"gpus", "1"}});
  const FreeGroup group = find_free_group(*star, demand_pattern(allgather(*star, 1)));
  ASSERT_EQ(group.order(), 40U);
  const OrbitHops all(*star, group, 100);
  const auto few = std::make_shared<const OrbitFabric>(star, group, 20);
  EXPECT_EQ(all.hops().size(), 39U);
  EXPECT_EQ(few->hops.hops().size(), 10U);
  const Demand demand = allgather(*star, kMB);
  const Deadline deadline;
  const OrbitImages images(few, *representative_moves(*star, few->group, few->hops, demand, {}, deadline),
                           demand);
  const ReplayResult replayed = replay(*star, demand, images.sends_of({0, demand.num_chunks()}));
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
}

TEST(Queue, NoReceiverIsLeftWithASlowSender) {
  // Some links of 64 GPUs have half to nine tenths of their bandwidth, none of those into a chassis among
  // them: 875 MB through eight of 25 GB/s take 4375 us. A chassis that a slow sender elsewhere fed all the
  // time would end 13 % later.
  const auto rails = std::make_shared<const Topology>(
      degrade(generate_topology("rails", {{"boxes", "8"}}), 0.05, 0.5, 0.9, 0));
  const Demand demand = allgather(*rails, 1e9 / 64 / 8, 8);
  for (const std::uint64_t seed : {1, 2}) {
    EngineOptions options;
    options.seed = seed;
    options.policy = "furthest";
    EXPECT_LT(finish_of(rails, demand, options), 1.09 * 4375) << seed;
  }
}

TEST(Queue, SlowSendersAreForSlowReceivers) {
  // Four GPUs around a switch, half the bandwidth out of GPU 0 and into GPU 1.
  TopologyData data{"test", "", {gpu(), gpu(), gpu(), gpu(), network_switch()}, {}, {}};
  for (int g = 0; g < 4; ++g) data.links.push_back(link(g, 4, g == 0 ? 0.5 : 1));
  for (int g = 0; g < 4; ++g) data.links.push_back(link(4, g, g == 1 ? 0.5 : 1));
  const auto star = std::make_shared<const Topology>(data);
  const Demand demand = allgather(*star, kMB, 16);
  std::map<std::string, int> from_slow_to_slow;
  for (const char* policy : {"furthest", "furthest-fit"}) {
    EngineOptions options;
    options.policy = policy;
    const EngineResult result = prepare_queue({star, demand}, options, {})(demand, options);
    for (const Send& into : result.schedule->sends) {
      if (into.link != LinkId{5}) continue;
      from_slow_to_slow[policy] += std::ranges::any_of(result.schedule->sends, [&](const Send& out) {
        return out.link == LinkId{0} && out.chunk == into.chunk && std::abs(into.start_us - out.start_us) < 2;
      });
    }
  }
  EXPECT_EQ(from_slow_to_slow["furthest-fit"], 48);  // all that GPU 1 gets
  EXPECT_LT(from_slow_to_slow["furthest"], 48);
}

TEST(Queue, NarrowTrunksBringEveryChunkOnce) {
  // Two leaves of four GPUs around one spine: what a GPU gets takes 7 x 40 us, and copies of four chunks for
  // four GPUs over the one trunk into their leaf would take 640 us.
  const auto tree =
      generated("fat_tree", {{"leaves", "2"}, {"gpus", "4"}, {"spines", "1"}, {"multicast", "false"}});
  const Demand demand = allgather(*tree, 1e6);
  const EngineResult by_queue = prepare_queue({tree, demand}, {}, {})(demand, {});
  const EngineResult by_list = prepare_list({tree, demand}, {}, {})(demand, {});
  for (const EngineResult* result : {&by_queue, &by_list}) {
    const auto over_trunks = std::ranges::count_if(result->schedule->sends, [&](const Send& send) {
      return !tree->is_gpu(tree->link(send.link).src) && !tree->is_gpu(tree->link(send.link).dst);
    });
    EXPECT_EQ(over_trunks, 2 * 8);  // up and down
    EXPECT_LT(result->schedule->finish_us, 1.3 * 280);
  }
}

TEST(Queue, RefusesWhatItDoesNotSupport) {
  const auto shared = fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)}, {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  EXPECT_THROW(prepare_queue({shared, allgather(*shared, kMB)}, {}, {}), Error);
  const auto ring = one_way_ring(3);
  EXPECT_THROW(prepare_queue({ring, make_demand(Collective::alltoall, kMB, 3, 1)}, {}, {}), Error);
}

}  // namespace
}  // namespace rondo::test_queue
