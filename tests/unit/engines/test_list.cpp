#include <gtest/gtest.h>

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "topologies.hpp"

namespace rondo::test_list {
namespace {

Topology topology_of(std::vector<Node> nodes, std::vector<Link> links,
                     std::vector<SharedBandwidth> shared = {}) {
  return *fabric(std::move(nodes), std::move(links), std::move(shared));
}
/// GPUs 0, 1, 2 around switch 3.
Topology star_of_three(Forwarding forwarding, double up_GBps = 1, double down_GBps = 1) {
  return topology_of({gpu(), gpu(), gpu(), network_switch(forwarding)},
                     {link(0, 3, up_GBps), link(1, 3, up_GBps), link(2, 3, up_GBps), link(3, 0, down_GBps),
                      link(3, 1, down_GBps), link(3, 2, down_GBps)});
}

EngineResult schedule(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                      const EngineOptions& options = {}) {
  return prepare_list({topology, demand}, options, {})(demand, options);
}

/// Schedules, replays and returns the finish time.
double finish_of(const Topology& topology, const Demand& demand, const std::string& policy = {}) {
  EngineOptions options;
  options.policy = policy;
  const EngineResult result = schedule(std::make_shared<const Topology>(topology), demand, options);
  const ReplayResult replayed = replay(topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us));
  return replayed.finish_us;
}

TEST(List, RingOneWayPassesEveryChunkOn) {
  const Topology ring =
      topology_of({gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 3), link(3, 0)});
  // Three steps of 1000 us + 1 us; the link is free again after 1000 us, but the next chunk comes at 1001.
  EXPECT_DOUBLE_EQ(finish_of(ring, make_demand(Collective::allgather, 4 * kMB, 4, 1)), 3003);
}

TEST(List, CutThroughStarMeetsTheDownlinkBound) {
  // Every downlink carries two chunks of 1000 us; then both latencies.
  EXPECT_DOUBLE_EQ(
      finish_of(star_of_three(Forwarding::cut_through), make_demand(Collective::allgather, 3 * kMB, 3, 1)),
      2002);
}

TEST(List, CutThroughRunsAtTheSlowerLink) {
  EXPECT_DOUBLE_EQ(finish_of(star_of_three(Forwarding::cut_through, 4, 1),
                             make_demand(Collective::allgather, 3 * kMB, 3, 1)),
                   2002);
}

TEST(List, StoreAndForwardTakesBothTransmissions) {
  // 0 sends to 1 and 2 in turn: the second chunk enters after 1000 us and leaves the switch at 2001.
  const Demand scatter = make_demand(Collective::scatter, 3 * kMB, 3, 1);
  EXPECT_DOUBLE_EQ(finish_of(star_of_three(Forwarding::store_and_forward), scatter), 3002);
}

TEST(List, SharedBandwidthIsNeverExceeded) {
  const std::vector<Link> links{link(0, 1), link(0, 2)};
  const Demand broadcast = make_demand(Collective::broadcast, kMB, 3, 1);
  EXPECT_DOUBLE_EQ(finish_of(topology_of({gpu(), gpu(), gpu()}, links), broadcast), 1001);
  const Topology shared = topology_of({gpu(), gpu(), gpu()}, links, {{"nic", {LinkId{0}, LinkId{1}}, 1.0}});
  EXPECT_DOUBLE_EQ(finish_of(shared, broadcast), 2001);
}

TEST(List, SharedBandwidthBelowAnyLinkIsRefused) {
  const Topology shared =
      topology_of({gpu(), gpu()}, {link(0, 1), link(1, 0)}, {{"nic", {LinkId{0}, LinkId{1}}, 0.5}});
  EXPECT_THROW(finish_of(shared, make_demand(Collective::broadcast, kMB, 2, 1)), Error);
}

TEST(List, RelaysWhereNoLinkLeadsToTheDestination) {
  const Topology line = topology_of({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 1), link(1, 0)});
  // The chunk for 2 goes first and crosses 1 -> 2 while the one for 1 follows.
  EXPECT_DOUBLE_EQ(finish_of(line, make_demand(Collective::scatter, 3 * kMB, 3, 1), "furthest"), 2002);
  EXPECT_NO_THROW(finish_of(line, make_demand(Collective::alltoall, 3 * kMB, 3, 2)));
}

TEST(List, WaitsUntilDataIsReady) {
  const Topology pair = topology_of({gpu(), gpu()}, {link(0, 1), link(1, 0)});
  const Demand demand(Collective::custom, kMB, 2, {{GpuId{0}, kMB, {GpuId{1}}, 500.0}}, 1);
  EXPECT_DOUBLE_EQ(finish_of(pair, demand), 1501);
}

TEST(List, ChunksOfDifferentSizes) {
  const Topology pair = topology_of({gpu(), gpu()}, {link(0, 1), link(1, 0)});
  const Demand demand(Collective::custom, 3 * kMB, 2,
                      {{GpuId{0}, kMB, {GpuId{1}}}, {GpuId{0}, 2 * kMB, {GpuId{1}}}}, 1);
  EXPECT_DOUBLE_EQ(finish_of(pair, demand), 3001);
}

TEST(List, CrossesASlowLinkOnceAChunk) {
  // Two pairs of GPUs with fast links, joined by one slow link each way.
  const Topology pairs =
      topology_of({gpu(), gpu(), gpu(), gpu()},
                  {link(0, 1, 10), link(1, 0, 10), link(2, 3, 10), link(3, 2, 10), link(0, 2), link(2, 0)});
  const Demand demand = make_demand(Collective::allgather, 4 * kMB, 4, 4);
  const EngineResult result = schedule(std::make_shared<const Topology>(pairs), demand);
  const auto crossings = std::count_if(result.schedule->sends.begin(), result.schedule->sends.end(),
                                       [](const Send& s) { return s.link == LinkId{4}; });
  EXPECT_EQ(crossings, 8);
  // 2 MB over the slow link, its latency, and one chunk of 250 KB over a fast one.
  EXPECT_NEAR(finish_of(pairs, demand), 2000 + 1 + 25 + 1, 1e-6);
}

TEST(List, SoonestSendsAgainWhereARelayWouldComeLater) {
  // 1000 bytes take 1 us a link and 10 us through the switch, 5 us between the receivers.
  const Topology fork =
      topology_of({gpu(), gpu(), gpu(), network_switch()},
                  {link(0, 3, 1, 5), link(3, 1, 1, 5), link(3, 2, 1, 5), link(1, 2, 1, 5), link(2, 1, 1, 5)});
  const Demand demand = make_demand(Collective::broadcast, 1000, 3, 1);
  EXPECT_DOUBLE_EQ(finish_of(fork, demand, "rarest"), 1 + 10 + 1 + 5);
  EXPECT_DOUBLE_EQ(finish_of(fork, demand, "soonest"), 1 + 1 + 10);
}

TEST(List, SameSeedSameSchedule) {
  const auto torus = std::make_shared<const Topology>(generate_topology("torus", {{"dims", "4x4"}}));
  const Demand demand = make_demand(Collective::allgather, 16 * kMB, 16, 4);
  for (const std::string& policy : list_policies()) {
    EngineOptions options;
    options.policy = policy;
    options.seed = 7;
    const auto first = schedule(torus, demand, options).schedule->sends;
    const auto second = schedule(torus, demand, options).schedule->sends;
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].chunk, second[i].chunk);
      EXPECT_EQ(first[i].link, second[i].link);
      EXPECT_EQ(first[i].start_us, second[i].start_us);
    }
  }
}

TEST(List, UnknownPolicyListsTheKnownOnes) {
  try {
    finish_of(star_of_three(Forwarding::cut_through), make_demand(Collective::allgather, 3 * kMB, 3, 1),
              "fastest");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("rarest"), std::string::npos);
  }
}

TEST(Hops, TimingThroughAStoreAndForwardSwitchBehindACutThroughOne) {
  // 0 -> (1 cut-through) -> (2 store-and-forward) -> 3, at 4, 2 and 1 GB/s, latencies 1, 2, 3.
  const Topology chain =
      topology_of({gpu(), network_switch(), network_switch(Forwarding::store_and_forward), gpu()},
                  {link(0, 1, 4, 1), link(1, 2, 2, 2), link(2, 3, 1, 3)});
  const HopTable table(chain);
  ASSERT_EQ(table.hops().size(), 1u);
  const Hop& hop = table.hop(0);
  // The first two links run at 2 GB/s: 500 us for 1 MB; the last one starts at 500 + 3.
  EXPECT_DOUBLE_EQ(hop.duration_us(kMB), 500 + 3 + 1000 + 3);
  EXPECT_DOUBLE_EQ(hop.links[1].offset_us, 1);
  EXPECT_DOUBLE_EQ(hop.links[2].offset_us + kMB * hop.links[2].offset_us_per_byte, 503);
}

}  // namespace
}  // namespace rondo::test_list
