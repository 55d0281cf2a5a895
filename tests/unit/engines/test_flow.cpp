#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "same_sends.hpp"

namespace rondo {

EngineInfo flow_engine();
}  // namespace rondo

namespace rondo::test_flow {
namespace {

using Fabric = std::shared_ptr<const Topology>;

const std::vector<std::string> kWholeRates{"bottleneck", "load", "shortest", "shortest-load", "orbits"};

/// One demand on one topology, prepared once.
class Flow {
 public:
  Flow(Fabric topology, Demand demand, bool symmetry = true)
      : topology_(std::move(topology)), demand_(std::move(demand)) {
    EngineOptions options;
    options.symmetry = symmetry;
    prepared_ = prepare_flow({topology_, demand_}, options, tools());
  }
  Flow(const Fabric& topology, double size_bytes)
      : Flow(topology, make_demand(Collective::alltoall, size_bytes, topology->num_gpus(), 1)) {}

  EngineResult schedule(int chunks, const std::string& policy = {}, std::uint64_t seed = 0) const {
    EngineOptions options;
    options.policy = policy;
    options.seed = seed;
    return prepared_(demand_.with_chunks(chunks), options);
  }
  /// Replays and returns the finish time; infinity where the policy leaves the problem to others.
  double finish(int chunks, const std::string& policy = {}) const {
    const EngineResult result = this->schedule(chunks, policy);
    if (!result.schedule) return kInfinity;
    const Schedule& schedule = *result.schedule;
    const ReplayResult replayed = replay(*topology_, demand_.with_chunks(chunks), schedule.sends);
    EXPECT_TRUE(replayed.valid()) << policy << ": " << *replayed.violation;
    EXPECT_TRUE(times_equal(replayed.finish_us, schedule.finish_us));
    return replayed.finish_us;
  }
  /// Of the policies at whole rates that are applicable.
  std::vector<double> finishes(int chunks) const {
    std::vector<double> all;
    for (const std::string& policy : kWholeRates) all.push_back(finish(chunks, policy));
    std::erase(all, kInfinity);
    return all;
  }
  double best_finish(int chunks) const {
    double best = kInfinity;
    for (const std::string& policy : flow_policies()) best = std::min(best, finish(chunks, policy));
    return best;
  }
  double gap(int chunks) const {
    return best_finish(chunks) / lower_bounds({topology_, demand_}, tools()).best().us - 1;
  }

 private:
  Fabric topology_;
  Demand demand_;
  PreparedEngine prepared_;
};

TEST(Flow, OneWayRingSendsFarDataFirst) {
  const Flow flow(one_way_ring(3), 3 * kMB);
  // Each link carries the far chunk, then the near one, then relays: busy from 0 to 3000.
  for (const double finish : flow.finishes(1)) EXPECT_DOUBLE_EQ(finish, 3001);
  EXPECT_EQ(flow.finishes(1).size(), kWholeRates.size());
}

TEST(Flow, SplitsAPairOverUnequalPaths) {
  const auto triangle = fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1), link(0, 2, 2), link(2, 1, 2)});
  const Flow flow(triangle, Demand(Collective::custom, 3 * kMB, 3, {{GpuId{0}, 3 * kMB, {GpuId{1}}}}, 1));
  // A third straight on and two thirds at twice the rate take 1000 us; the last of 20 relayed chunks takes 50
  // us more.
  EXPECT_DOUBLE_EQ(flow.finish(30), 1052);
  EXPECT_NEAR(flow.schedule(30).metrics.at("steady_us"), 1000, 1e-6);
}

TEST(Flow, KeepsAllPortsOfASwitchBusy) {
  for (const int gpus : {3, 4, 6}) {
    const Flow flow(star(gpus), gpus * kMB);
    // gpus - 1 rounds in which every GPU sends and receives.
    EXPECT_DOUBLE_EQ(flow.finish(1), 1000 * (gpus - 1) + 2) << gpus;
  }
}

TEST(Flow, StoreAndForwardSwitch) {
  // Four chunks of 500 us out of every GPU, and the last one once more from the switch.
  const Flow flow(star(3, Forwarding::store_and_forward), 3 * kMB);
  EXPECT_DOUBLE_EQ(flow.best_finish(2), 2502);
}

TEST(Flow, SharedBandwidthIsKept) {
  // 1 and 2 send 1 MB each to 0 over links of 1 GB/s that share 1 GB/s.
  const auto shared =
      fabric({gpu(), gpu(), gpu()}, {link(1, 0), link(2, 0)}, {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  const Flow flow(shared, make_demand(Collective::gather, 3 * kMB, 3, 1));
  const std::vector<double> finishes = flow.finishes(1);
  EXPECT_EQ(finishes.size(), 4U);  // all policies but those that need a symmetry
  for (const double finish : finishes) EXPECT_DOUBLE_EQ(finish, 2001);
}

/// Three leaves of two GPUs under a spine, links of 2 GB/s, uplinks of `uplink_GBps`.
Fabric leaves(double uplink_GBps) {
  std::vector<Node> nodes(6);
  std::vector<Link> links;
  for (int leaf = 6; leaf < 9; ++leaf) {
    for (const int g : {2 * (leaf - 6), 2 * (leaf - 6) + 1}) {
      links.push_back(link(g, leaf, 2));
      links.push_back(link(leaf, g, 2));
    }
    links.push_back(link(leaf, 9, uplink_GBps));
    links.push_back(link(9, leaf, uplink_GBps));
  }
  nodes.insert(nodes.end(), 4, network_switch());
  return fabric(nodes, links);
}

TEST(Flow, FastUplinksCarrySeveralTransfers) {
  // Out of every GPU go 5 MB, in 2500 us, and out of every leaf 8 MB, in 2000 us over 4 GB/s.
  const Flow fast(leaves(4), 6 * kMB);
  EXPECT_LE(fast.gap(1), 0.01);
  // Over 3 GB/s that takes 2667 us, three at a time at half of the rate.
  const Flow uneven(leaves(3), 6 * kMB);
  EXPECT_LE(uneven.finish(4, "fitting"), 3100);
  EXPECT_GE(uneven.finish(4, "bottleneck"), 8 * kMB / 2e3);  // one at a time
}

TEST(Flow, SlowTransfersHaveTheLinksThatTheyShareAlone) {
  const auto whole =
      std::make_shared<const Topology>(generate_topology("rails", {{"boxes", "4"}, {"gpus", "4"}}));
  const auto damaged = std::make_shared<const Topology>(degrade(*whole, 0.1, 0.5, 0));
  const double size = 64 * kMB;
  const auto is_offered = [&](const Fabric& topology) {
    const Demand demand = make_demand(Collective::alltoall, size, topology->num_gpus(), 1);
    return flow_engine().offers({topology, demand}, {})("alone");
  };
  EXPECT_FALSE(is_offered(whole));
  EXPECT_FALSE(is_offered(leaves(4)));
  EXPECT_TRUE(is_offered(damaged));
  // What a transfer at half the rate leaves of a link that takes others at the whole one stays idle.
  const Flow flow(damaged, size);
  EXPECT_LE(flow.finish(8, "alone"), 1.01 * 2197.3);
  EXPECT_GE(flow.finish(8, "bottleneck"), 1.1 * 2197.3);
}

TEST(Flow, ConstantRatesAreTheFlowItself) {
  const Flow flow(leaves(3), 6 * kMB);
  EngineOptions options;
  options.policy = "constant";
  options.concurrency = kAnyConcurrency;
  const Demand demand = make_demand(Collective::alltoall, 6 * kMB, 6, 1);
  const EngineResult result = prepare_flow({leaves(3), demand}, options, tools())(demand, options);
  ASSERT_TRUE(result.schedule);
  const ReplayResult replayed = replay(*leaves(3), demand, result.schedule->sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, 8 * kMB / 3e3 + 4, 1e-6);  // latencies of four links
}

TEST(Flow, ConstantRatesInSlots) {
  // Of 70 GPUs behind one switch each sends 69 transfers: 8 at a time in six slots and 7 in three, each slot
  // as long as the load in it, so that links are busy from beginning to end.
  const Fabric few = star(70);
  EXPECT_NEAR(Flow(few, 70 * kMB).finish(1, "constant"), 69'002, 0.69e-3);
  // Groups of routers: paths of up to five links, two transfers at a time.
  const Fabric groups = generated("dragonfly", {{"groups", "3"}, {"routers", "2"}, {"hosts", "1"}});
  const Demand demand = make_demand(Collective::alltoall, 6 * kMB, 6, 1);
  EngineOptions options;
  options.policy = "orbits-constant";
  options.policy_is_asked = true;
  options.concurrency = 2;
  const EngineResult result = prepare_flow({groups, demand}, options, tools())(demand, options);
  ASSERT_TRUE(result.schedule);
  const ReplayResult replayed = replay(*groups, demand, result.schedule->sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us));
  std::map<LinkId, std::vector<std::pair<double, int>>> changes;
  for (const Send& send : result.schedule->sends) {
    if (!groups->is_gpu(groups->link(send.link).src)) continue;
    changes[send.link].emplace_back(send.start_us + 1e-6, 1);
    changes[send.link].emplace_back(send.end_us - 1e-6, -1);
  }
  for (auto& [link, times] : changes) {
    std::ranges::sort(times);
    int now = 0;
    for (const auto& [t_us, change] : times) EXPECT_LE(now += change, 2);
  }
}

TEST(Flow, SlotsAreNotForWhatGpusRelay) {
  const Fabric ring = one_way_ring(3);
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  EngineOptions options;
  options.policy = "constant";
  options.concurrency = 8;
  EXPECT_FALSE(prepare_flow({ring, demand}, options, tools())(demand, options).schedule);
  options.policy_is_asked = true;
  EXPECT_THROW(prepare_flow({ring, demand}, options, tools())(demand, options), Error);
}

TEST(Flow, LinkFasterThanItsGroupIsRefused) {
  const auto shared = fabric({gpu(), gpu()}, {link(0, 1, 2), link(1, 0, 2)}, {{"bus", {LinkId{0}}, 1}});
  EXPECT_THROW(Flow(shared, 2 * kMB).schedule(1), Error);
}

TEST(Flow, ScatterAndGather) {
  const auto ring = one_way_ring(4);
  // The link next to the root carries 3 MB: outwards the farthest first, inwards what is near first, and the
  // farthest comes last over all three links either way.
  EXPECT_DOUBLE_EQ(Flow(ring, make_demand(Collective::scatter, 4 * kMB, 4, 1)).best_finish(1), 3003);
  EXPECT_DOUBLE_EQ(Flow(ring, make_demand(Collective::gather, 4 * kMB, 4, 1)).best_finish(1), 3003);
}

TEST(Flow, PoliciesDifferInWhatIsMostUrgent) {
  // Chunks 0, for GPU 2, and 1, for GPU 4, wait for link 0 -> 1. Beyond it, chunk 0 has link 1 -> 2, which
  // carries five chunks; chunk 1 has links 1 -> 3 and 3 -> 4, which carry three each.
  const auto tree =
      fabric({gpu(), gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(1, 3), link(3, 4)});
  std::vector<Contribution> parts{{GpuId{0}, kMB, {GpuId{2}}}, {GpuId{0}, kMB, {GpuId{4}}}};
  for (int i = 0; i < 4; ++i) parts.push_back({GpuId{1}, kMB, {GpuId{2}}});
  for (int i = 0; i < 2; ++i) parts.push_back({GpuId{1}, kMB, {GpuId{3}}});
  for (int i = 0; i < 2; ++i) parts.push_back({GpuId{3}, kMB, {GpuId{4}}});
  const Flow flow(tree, Demand(Collective::custom, 10 * kMB, 5, parts, 1));
  const auto first_on_link_0 = [&](const std::string& policy) {
    const Schedule schedule = *flow.schedule(1, policy).schedule;
    const auto first = std::ranges::find_if(
        schedule.sends, [](const Send& send) { return send.link == LinkId{0} && send.start_us == 0; });
    return first->chunk.value;
  };
  for (const char* policy : {"bottleneck", "shortest"}) EXPECT_EQ(first_on_link_0(policy), 0) << policy;
  for (const char* policy : {"load", "shortest-load"}) EXPECT_EQ(first_on_link_0(policy), 1) << policy;
  for (const double finish : flow.finishes(1)) EXPECT_DOUBLE_EQ(finish, 5001);  // five chunks on 1 -> 2
}

TEST(Flow, WaitsUntilDataIsReady) {
  const Demand demand(Collective::custom, 2 * kMB, 2,
                      {{GpuId{0}, kMB, {GpuId{1}}, 500}, {GpuId{0}, kMB, {GpuId{1}}, 0}}, 1);
  EXPECT_DOUBLE_EQ(Flow(fabric({gpu(), gpu()}, {link(0, 1)}), demand).finish(1), 2001);
}

TEST(Flow, SameSeedSameSchedule) {
  const Flow flow(shipped("ndv2-4"), 1e6);
  const auto a = *flow.schedule(2, "load", 7).schedule;
  const auto b = *flow.schedule(2, "load", 7).schedule;
  expect_same_sends(a, b);
}

TEST(Flow, WhatIsRoundedOnceServesOnlyThoseThatBeginAlike) {
  const Fabric fabric = shipped("ndv2-4");
  const Flow in_turn(fabric, 1e6);
  struct Call {
    int chunks;
    const char* policy;
    std::uint64_t seed;
  };
  for (const auto& [chunks, policy, seed] :
       {Call{2, "bottleneck", 7}, Call{2, "load", 7}, Call{3, "bottleneck", 7}, Call{2, "load", 7},
        Call{2, "bottleneck", 8}, Call{2, "load", 7}, Call{2, "shortest-load", 7}, Call{2, "shortest", 7}}) {
    expect_same_sends(*in_turn.schedule(chunks, policy, seed).schedule,
                      *Flow(fabric, 1e6).schedule(chunks, policy, seed).schedule);
  }
}

TEST(Flow, RefusesWhatItCannotDo) {
  EXPECT_THROW(prepare_flow({star(3), make_demand(Collective::allgather, 1e6, 3, 1)}, {}, tools()), Error);
  EXPECT_THROW(Flow(star(3), 1e6).schedule(1, "fastest"), Error);
}

TEST(Flow, AnInterruptedCallHasNoSchedule) {
  const auto fabric = star(4);
  const Demand demand = make_demand(Collective::alltoall, 4 * kMB, 4, 1);
  const PreparedEngine prepared = prepare_flow({fabric, demand}, {}, tools());
  std::atomic<bool> interrupt = false;
  EngineOptions options;
  options.limits.interrupt = &interrupt;
  for (const char* policy : {"bottleneck", "orbits"}) {
    options.policy = policy;
    interrupt = false;
    EXPECT_TRUE(prepared(demand, options).schedule);
    interrupt = true;
    EXPECT_FALSE(prepared(demand, options).schedule);
  }
}

TEST(Flow, BeyondTheLpBalancesShortestRoutes) {
  const auto full = generated("full", {{"gpus", "30"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
  const Flow flow(full, make_demand(Collective::alltoall, 30 * kMB, 30, 1), false);
  EXPECT_EQ(flow.schedule(1).remarks.size(), 1U);
  EXPECT_DOUBLE_EQ(flow.finish(1), 1001);
}

TEST(Flow, MeetsTheBoundOfShippedFabrics) {
  EXPECT_LE(Flow(shipped("ndv2-2"), 1e9).gap(1), 0.001);
  EXPECT_LE(Flow(shipped("ndv2-2"), 64e3).gap(4), 0.01);
  EXPECT_LE(Flow(shipped("dgx1"), 1e9).gap(6), 0.005);
  EXPECT_LE(Flow(shipped("ndv2-4"), 1e9).gap(4), 0.01);
  EXPECT_LE(Flow(shipped("dgx2-2"), 1e9).gap(1), 0.005);
  EXPECT_LE(Flow(shipped("amd-2"), 1e9).gap(4), 0.01);
}

TEST(Flow, BoxesOnRails) {
  for (const char* boxes : {"2", "4"}) {  // DGX A100 with 2 spine switches
    const auto rails = generated("rails", {{"boxes", boxes}, {"rails", "2"}});
    EXPECT_LE(Flow(rails, 1e9).gap(8), 0.02) << boxes;
  }
}

// TE-CCL, Table 8: NDv2 x2, AllToAll, the best of both epoch rules.
TEST(Flow, NoLaterThanTeCclOnNdv2) {
  const auto ndv2 = shipped("ndv2-2");
  for (const auto& [size, published_us] : {std::pair{1e3, 4.235},
                                           {4e3, 4.5},
                                           {16e3, 7.27},
                                           {64e3, 23.3},
                                           {256e3, 85.52},
                                           {1e6, 325.28},
                                           {4e6, 1296.25}}) {
    EXPECT_LE(Flow(ndv2, size).best_finish(1), published_us) << size;
  }
}

}  // namespace
}  // namespace rondo::test_flow
