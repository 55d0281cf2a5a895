// The parts of list scheduling, each at its own level.

#include <gtest/gtest.h>

#include "fabrics.hpp"
#include "list/deliveries.hpp"
#include "list/holder_distances.hpp"
#include "list/holder_table.hpp"
#include "list/hop_queue.hpp"
#include "list/list_rules.hpp"
#include "list/orbit_images.hpp"
#include "list/orbit_timetable.hpp"
#include "list/wake_table.hpp"

namespace rondo::test_list_parts {
namespace {

Demand allgather(const Topology& topology) {
  return make_demand(Collective::allgather, static_cast<double>(topology.num_gpus()) * kMB,
                     topology.num_gpus(), 1);
}
FreeGroup shifts_of(const Topology& topology) {
  return find_free_group(topology, demand_pattern(allgather(topology)));
}
/// 0 - 1 - 2, both ways, 1 GB/s, 1 us.
std::shared_ptr<const Topology> line() {
  return fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 1), link(1, 0)});
}

TEST(HopQueue, SmallestKeyFirst) {
  HopQueue queue;
  for (const std::uint32_t key : {50, 10, 40, 20, 60, 30}) queue.push({key, key / 10});
  queue.replace_first({45, 9});  // the key of chunk 1 has grown
  std::vector<std::uint64_t> keys;
  for (; !queue.empty(); queue.pop()) keys.push_back(queue.first().key);
  EXPECT_EQ(keys, (std::vector<std::uint64_t>{20, 30, 40, 45, 50, 60}));
}

TEST(WakeTable, LinksOfAGroupWakeEachOther) {
  WakeTable wakes(3);
  wakes.add(0, 5, 1);
  wakes.add(0, 0, 2);
  wakes.add(0, 5, 1);
  wakes.add(1, 1, 0);
  wakes.add(2, 7, 3);
  wakes.share(std::vector<std::size_t>{0, 2});
  wakes.finish();
  const auto receivers = [&](std::size_t l) {
    return std::vector(wakes.receivers(l).begin(), wakes.receivers(l).end());
  };
  EXPECT_EQ(receivers(0), (std::vector{1, 2, 3}));
  EXPECT_EQ(receivers(1), (std::vector{0}));
  EXPECT_EQ(receivers(2), receivers(0));
  EXPECT_EQ(std::vector(wakes.offsets_us(0).begin(), wakes.offsets_us(0).end()),
            (std::vector<double>{0, 5, 7}));
}

TEST(Deliveries, ReachDestinationsOverRelays) {
  const auto topology = line();
  const Demand demand(Collective::custom, kMB, 3, {{GpuId{0}, kMB, {GpuId{2}}}}, 1);
  const Deliveries planned = plan_deliveries(*topology, HopTable(*topology), demand, 0);
  ASSERT_EQ(planned.receivers.size(), 1U);
  EXPECT_EQ(planned.receivers[0], (std::vector{GpuId{1}, GpuId{2}}));
}

struct LineTable {
  std::shared_ptr<const Topology> topology = line();
  HopTable hops{*topology};
  Demand demand = make_demand(Collective::broadcast, kMB, 3, 1);
  Deliveries deliveries = plan_deliveries(*topology, hops, demand, 0);
};

TEST(HolderTable, WaitsForANearerHolder) {
  const LineTable line_of;
  const ListRules rules;
  HolderTable table(line_of.hops, line_of.demand, line_of.deliveries, rules);
  table.promise(0, GpuId{0}, 0, 0);
  EXPECT_EQ(table.key(0), make_key(1, 0));
  // The 64th part of the chunk takes 33.25 us from GPU 0 to GPU 2, 16.625 us from GPU 1.
  EXPECT_EQ(table.near_share(), 1.0 / 64);
  EXPECT_FALSE(table.better_wait(0, 2, 33, 0));
  EXPECT_TRUE(table.better_wait(0, 2, 34, 0));
  table.promise(0, GpuId{1}, 1001, 0);
  EXPECT_TRUE(table.better_wait(0, 2, 17, 0));
  EXPECT_EQ(table.key(0), make_key(2, 0));
}

TEST(HolderTable, SoonestComparesArrivals) {
  const LineTable line_of;
  const ListRules rules = list_rules("soonest", 0);
  HolderTable table(line_of.hops, line_of.demand, line_of.deliveries, rules);
  EXPECT_EQ(table.near_share(), 1);
  table.promise(0, GpuId{0}, 0, 0);
  table.land(0, GpuId{0});
  table.promise(0, GpuId{1}, 1001, 0);
  // Relayed, the chunk arrives at 2002 us at the earliest; over a hop of 1500 us before that.
  EXPECT_FALSE(table.better_wait(0, 2, 1500, 0));
  EXPECT_TRUE(table.better_wait(0, 2, 2100, 0));
  table.land(0, GpuId{1});
  EXPECT_TRUE(table.better_wait(0, 2, 1500, 1001));
}

TEST(HolderTable, FurthestGoesFirst) {
  // Only GPU 0 holds chunk 0, GPU 1 chunk 1: of the diameter of 2002 us one is 1, the other 1/2 away.
  const LineTable line_of;
  const Demand demand(Collective::custom, 2 * kMB, 3,
                      {{GpuId{0}, kMB, {GpuId{1}, GpuId{2}}}, {GpuId{1}, kMB, {GpuId{0}, GpuId{2}}}}, 1);
  const Deliveries deliveries = plan_deliveries(*line_of.topology, line_of.hops, demand, 0);
  const ListRules rules = list_rules("furthest", 0);
  HolderTable table(line_of.hops, demand, deliveries, rules);
  table.promise(0, GpuId{0}, 0, 0);
  table.promise(1, GpuId{1}, 0, 0);
  EXPECT_EQ(table.key(0), make_key(0, 1));
  EXPECT_EQ(table.key(1), make_key(0x7fffff, 1));
}

TEST(HolderDistances, OfAOneWayRing) {
  const auto ring = one_way_ring(4);
  const FreeGroup group = shifts_of(*ring);
  const OrbitHops hops(*ring, group, 100);
  ASSERT_EQ(hops.hops().size(), 1U);
  HolderDistances distances(group, hops, kMB, 4, true);
  EXPECT_FLOAT_EQ(distances.relay_us(0, 3, 0), 3003);
  EXPECT_FLOAT_EQ(distances.diameter_us(), 3003);
  // Every GPU holds its own chunk. GPU 0 sees that of GPU e as chunk e.
  distances.add_holder(0, 0);
  EXPECT_FLOAT_EQ(distances.near_us(0, 1), 3003);
  EXPECT_FLOAT_EQ(distances.near_us(0, 3), 1001);
  EXPECT_FLOAT_EQ(distances.farthest_us(0), 3003);
  // Every GPU has been sent the chunk of the one before it.
  distances.add_holder(0, 3);
  EXPECT_FLOAT_EQ(distances.near_us(0, 1), 2002);
  EXPECT_FLOAT_EQ(distances.near_us(0, 2), 1001);
  EXPECT_FLOAT_EQ(distances.farthest_us(0), 2002);
}

TEST(HolderDistances, OnlyHoldersNearerThanAHopCount) {
  // 1001 us one way around, 4001 us the other way: two hops ahead are nearer than one back.
  const auto ring = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 0), link(1, 0, 0.25),
                                                   link(2, 1, 0.25), link(0, 2, 0.25)});
  const FreeGroup group = shifts_of(*ring);
  ASSERT_EQ(group.order(), 3U);
  HolderDistances distances(group, OrbitHops(*ring, group, 100), kMB, 3, false);
  EXPECT_FLOAT_EQ(distances.nearest_other_us(0), 1001);
  distances.add_holder(0, 0);
  EXPECT_FLOAT_EQ(distances.near_us(0, 1), 2002);
  EXPECT_FLOAT_EQ(distances.near_us(0, 2), 1001);
  // Where no hop is slower than a relay, none counts.
  const auto one_way = one_way_ring(3);
  const FreeGroup shifts = shifts_of(*one_way);
  const HolderDistances none(shifts, OrbitHops(*one_way, shifts, 100), kMB, 3, false);
  EXPECT_TRUE(std::isinf(none.nearest_other_us(0)));
}

TEST(OrbitTimetable, HopsBehindOneLinkWait) {
  // Links 0, 1, 2 lead to the switch, 3, 4, 5 from it; half the bandwidth out of GPU 0.
  const auto topology = fabric({gpu(), gpu(), gpu(), network_switch()},
                               {link(0, 3, 0.5), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)});
  const FreeGroup group = FreeGroup::trivial(*topology);
  const OrbitHops hops(*topology, group, 100);
  OrbitTimetable timetable(*topology, group, hops, kMB);
  const auto hop = [&](int from, int to) {
    for (const int h : hops.out_of(from)) {
      if (hops.hop(h).to == to) return h;
    }
    return -1;
  };
  EXPECT_EQ(timetable.slow_link(hop(0, 1)), 0);
  EXPECT_EQ(timetable.slow_link(hop(2, 1)), -1);
  EXPECT_DOUBLE_EQ(timetable.excess(hop(0, 1)), 1);  // 2000 us on link 4 instead of 1000
  EXPECT_DOUBLE_EQ(timetable.excess(hop(2, 1)), 0);
  std::vector<OrbitTimetable::Wake> wakes;
  timetable.occupy(hop(2, 1), 0, wakes);
  // Link 2 is free at 1000 us, link 4, which hops use 1 us after their starts, at 1001.
  ASSERT_EQ(wakes.size(), 2U);
  EXPECT_EQ(wakes[0].link, 2);
  EXPECT_DOUBLE_EQ(wakes[0].t_us, 1000);
  EXPECT_EQ(wakes[1].link, 4);
  EXPECT_DOUBLE_EQ(wakes[1].t_us, 1000);
  EXPECT_FALSE(timetable.is_idle(hop(2, 0), 999));
  EXPECT_FALSE(timetable.is_idle(hop(0, 1), 999));
  EXPECT_TRUE(timetable.is_idle(hop(0, 1), 1000));
  EXPECT_TRUE(timetable.is_idle(hop(1, 0), 0));
  EXPECT_EQ(std::vector(timetable.receivers(2).begin(), timetable.receivers(2).end()), (std::vector{0, 1}));
}

TEST(OrbitImages, OneMoveIsAWholeStepOfARing) {
  const auto ring = one_way_ring(3);
  const auto ring_of_orbits = std::make_shared<const OrbitFabric>(ring, shifts_of(*ring), 100);
  EXPECT_TRUE(ring_of_orbits->hops.reach_all());
  // GPU 0 sends its own chunk to GPU 1, which sees it as that of the GPU two further on.
  const OrbitImages images(ring_of_orbits, {{ChunkId{2}, 0, 10}}, allgather(*ring));
  const std::vector<Send> sends = images.sends_of({0, 3});
  ASSERT_EQ(sends.size(), 3U);
  EXPECT_EQ(images.num_sends(), 3U);
  EXPECT_EQ(images.most_sends_on_a_link(), 1U);
  for (int g = 0; g < 3; ++g) {
    const Send& send = sends[static_cast<std::size_t>(g)];
    EXPECT_EQ(send.link, LinkId{g});
    EXPECT_EQ(send.chunk, ChunkId{g});
    EXPECT_DOUBLE_EQ(send.start_us, 10);
    EXPECT_DOUBLE_EQ(send.arrival_us, 1011);
  }
  EXPECT_DOUBLE_EQ(images.finish_us(), 1011);
  const std::vector<Send> middle = images.sends_of({1, 2});
  ASSERT_EQ(middle.size(), 1U);
  EXPECT_EQ(middle.front().chunk, ChunkId{1});
}

TEST(OrbitHops, WithoutHopsThatMeetTheirImages) {
  // All hops around the ring of switches use two links of one orbit: no GPU is left that reaches another.
  const auto ring = fabric({gpu(), gpu(), network_switch(), network_switch()},
                           {link(0, 2), link(1, 3), link(2, 3), link(3, 2), link(2, 0), link(3, 1)});
  const FreeGroup group = shifts_of(*ring);
  ASSERT_EQ(group.order(), 2U);
  EXPECT_TRUE(OrbitHops(*ring, group, 100).reach_all());
  const auto long_way = fabric({gpu(), gpu(), gpu(), network_switch(), network_switch(), network_switch()},
                               {link(0, 3), link(1, 4), link(2, 5), link(3, 4), link(4, 5), link(5, 3),
                                link(3, 2), link(4, 0), link(5, 1)});
  const FreeGroup shifts = shifts_of(*long_way);
  ASSERT_EQ(shifts.order(), 3U);
  // GPU g enters at switch g; switch s leads to GPU s - 1. The hop back by one GPU is short, that by two
  // takes two of the links between switches.
  const OrbitHops hops(*long_way, shifts, 100);
  EXPECT_EQ(hops.hops().size(), 1U);
  EXPECT_EQ(hops.hop(0).shift, 2);
}

TEST(ListRules, WhoGoesFirst) {
  const Choice fallback{0, 0, true, 1, 1};
  const Choice few{1, 0, false, 5, 2};
  const Choice many{2, 0, false, 9, 3};
  for (const SenderOrder order : {SenderOrder::best_chunk, SenderOrder::fullest, SenderOrder::scarcest})
    EXPECT_TRUE(goes_first(many, fallback, order));
  EXPECT_TRUE(goes_first(few, many, SenderOrder::best_chunk));
  EXPECT_TRUE(goes_first(many, few, SenderOrder::fullest));
  EXPECT_TRUE(goes_first(few, many, SenderOrder::scarcest));
  EXPECT_FALSE(goes_first(many, few, SenderOrder::fitting));
}

TEST(ListRules, FallbacksWhereOtherLinksAreBusy) {
  const auto topology = fabric({gpu(), gpu()}, {link(0, 1, 1), link(0, 1, 3), link(1, 0)});
  const HopTable hops(*topology);
  const double in_GBps = goodput_into_GBps(*topology, GpuId{1}, kMB);
  EXPECT_DOUBLE_EQ(in_GBps, 4);
  const Hop hop = make_hop(*topology, std::vector{LinkId{0}});
  // The other link takes 1000 us for 3 MB.
  EXPECT_TRUE(others_are_busy_longer(hop, 0.999 * kMB, in_GBps, 3 * kMB));  // 1000 us, latency included
  EXPECT_FALSE(others_are_busy_longer(hop, kMB, in_GBps, 3 * kMB));
  EXPECT_TRUE(others_are_busy_longer(hop, kMB, 1, 0));  // there is no other link
}

TEST(ListRules, WhoLacksMostIsServedFirst) {
  std::vector<char> waiting{1, 0, 1, 1};
  const std::vector<int> lacking{1, 9, 3, 2};
  std::vector<std::size_t> served;
  Random random(0);
  serve_in_turn(
      waiting, lacking, random,
      [&](std::size_t g) {
        served.push_back(g);
        return g == 3 && served.size() < 4;  // once
      },
      [](std::size_t) {});
  EXPECT_EQ(served, (std::vector<std::size_t>{2, 3, 0, 3}));
  EXPECT_EQ(waiting, (std::vector<char>{0, 0, 0, 0}));
}

TEST(ListRules, KeysOfDistances) {
  EXPECT_EQ(closeness(10.0, 10.0), 0U);
  EXPECT_EQ(closeness(0.0, 10.0), 0xffffffU);
  EXPECT_EQ(closeness(20.0F, 10.0F), 0U);
  EXPECT_LT(make_key(1, 0xffffff) | kChance, make_key(2, 0));
}

}  // namespace
}  // namespace rondo::test_list_parts
