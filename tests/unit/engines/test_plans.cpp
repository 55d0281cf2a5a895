#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>

#include "merging.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/ascending.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"

/// Plans, the passes over them and their neighbours.
namespace rondo::test_plans {
namespace {

using Parameters = std::map<std::string, std::string>;

/// GPU 0 -> 1 -> 2, 1 GB/s, 1 us; 1e3 bytes take 1 us on a link.
Topology line() {
  return Topology{TopologyData{
      "line", "", std::vector<Node>(3), {{NodeId{0}, NodeId{1}, 1, 1}, {NodeId{1}, NodeId{2}, 1, 1}}}};
}

TEST(Ascending, IsByKeyAndThenByNumberHoweverManyKeysThereAre) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ascending({2, -0.0, kFar, 0.0, -1.5, 2, -kFar}), (std::vector<int>{6, 4, 1, 3, 0, 5, 2}));
  EXPECT_TRUE(ascending({}).empty());
  std::vector<double> keys{kFar, -0.0, 0.0, 1e-300, -1e300};
  while (keys.size() < 1000) {
    const std::uint64_t bits = mix_bits(keys.size());
    keys.push_back(static_cast<double>(bits % 97) * (bits % 2 == 0 ? 0.1 : -1e-9));
  }
  std::vector<int> expected(keys.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::ranges::stable_sort(expected, {}, [&](int i) { return keys[static_cast<std::size_t>(i)]; });
  EXPECT_EQ(ascending(keys), expected);
}

TEST(Justification, ClosesAHoleThatCameFromTheOrder) {
  // Both chunks of 4 us go 0 -> 1, only chunk 0 goes on to 2; it was sent last, and ends at 4 + 5 + 5.
  const Topology topology = line();
  const Demand demand(Collective::custom, 8e3, 3,
                      {{GpuId{0}, 4e3, {GpuId{1}, GpuId{2}}}, {GpuId{0}, 4e3, {GpuId{1}}}}, 1);
  const PlanSpace space = make_plan_space(topology, demand);
  const auto hop_to = [&](int gpu) { return space.into[static_cast<std::size_t>(gpu)].front(); };
  TransferPlan late{{{ChunkId{1}, hop_to(1)}, {ChunkId{0}, hop_to(1)}, {ChunkId{0}, hop_to(2), 1}}};
  late = placed_forward(late, space, {0, 1, 2});
  EXPECT_DOUBLE_EQ(late.quality.finish_us, 14);
  // Of what can wait: chunk 1 until the end, chunk 0 not at all.
  EXPECT_EQ(latest_starts(late, space), (std::vector<double>{9, 4, 9}));
  EXPECT_EQ(due_times(late, {9, 4, 9}), (std::vector<double>{14, 9, 14}));
  EXPECT_DOUBLE_EQ(justified(late, space).quality.finish_us, 10);
}

TEST(TransferPlan, IsAllThatAScheduleConsistsOf) {
  for (const char* forwarding : {"cut_through", "store_and_forward"}) {
    Topology fabric = generate_topology("rails", {{"boxes", "2"}, {"gpus", "4"}, {"rails", "2"}});
    if (forwarding[0] == 's') fabric = with_switch_forwarding(fabric, Forwarding::store_and_forward);
    const auto topology = std::make_shared<const Topology>(std::move(fabric));
    const Demand demand = make_demand(Collective::allgather, 8e6, topology->num_gpus(), 2);
    const Schedule schedule = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
    PlanSpace space = make_plan_space(*topology, demand);
    const auto plan = plan_of(schedule, space);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->transfers.size(), 8U * 7 * 2);
    const Schedule again = schedule_of(*plan, space);
    EXPECT_NEAR(replay(*topology, demand, again.sends).finish_us, schedule.finish_us, 1e-6);
  }
}

TEST(Neighbours, AreSchedulesAndTheSameForASeed) {
  for (const auto& [family, parameters] :
       {std::pair<std::string, Parameters>{"rails", {{"boxes", "2"}, {"gpus", "4"}, {"rails", "2"}}},
        {"torus", {{"dims", "3x3"}}},
        {"star", {{"chassis", "3"}, {"gpus", "3"}}}}) {
    const auto topology =
        std::make_shared<const Topology>(degrade(generate_topology(family, parameters), 0.1, 0.5, 1));
    for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
      const Demand demand = make_demand(collective, 1e8, topology->num_gpus(), 2);
      const Schedule schedule = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
      PlanSpace space = make_plan_space(*topology, demand);
      const SurveyedPlan incumbent = survey(*plan_of(schedule, space), space);
      std::size_t others = 0;
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto neighbour = neighbour_of(incumbent, space, 0, seed);
        const auto again = neighbour_of(incumbent, space, 0, seed);
        ASSERT_EQ(neighbour.has_value(), again.has_value());
        if (!neighbour) continue;
        const Schedule one = schedule_of(*neighbour, space);
        const ReplayResult replayed = replay(*topology, demand, one.sends);
        ASSERT_TRUE(replayed.valid()) << family << ", seed " << seed << ": " << *replayed.violation;
        EXPECT_NEAR(replayed.finish_us, neighbour->quality.finish_us, 1e-6);
        EXPECT_EQ(again->quality, neighbour->quality);
        others += neighbour->quality != incumbent.plan.quality ? 1 : 0;
      }
      EXPECT_GT(others, 5U) << family;
    }
  }
}

/// GPU 0 has two chunks of 4 us for GPU 1, and both go there straight, one after the other: 9 us. Over GPU 2
/// the second one takes 2 x 3 us, as those links are twice as fast.
TEST(Neighbours, TakeAnotherPathWhereThatEndsEarlier) {
  const Topology topology{
      TopologyData{"triangle",
                   "",
                   std::vector<Node>(3),
                   {{NodeId{0}, NodeId{1}, 1, 1}, {NodeId{0}, NodeId{2}, 2, 1}, {NodeId{2}, NodeId{1}, 2, 1}},
                   {}}};
  const Demand demand(Collective::custom, 8e3, 3, {{GpuId{0}, 8e3, {GpuId{1}}}}, 2);
  const PlanSpace space = make_plan_space(topology, demand);
  const auto straight = std::ranges::find(space.hops, GpuId{1}, &Hop::dst) - space.hops.begin();
  ASSERT_EQ(space.hops[static_cast<std::size_t>(straight)].src, GpuId{0});
  TransferPlan plan{{{ChunkId{0}, static_cast<int>(straight)}, {ChunkId{1}, static_cast<int>(straight)}}};
  const SurveyedPlan incumbent = survey(placed_forward(plan, space, {0, 1}), space);
  EXPECT_DOUBLE_EQ(incumbent.plan.quality.finish_us, 9);
  double best_us = 9;
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    if (const auto moved = reinserted(incumbent, space, 0, random))
      best_us = std::min(best_us, moved->quality.finish_us);
  }
  EXPECT_DOUBLE_EQ(best_us, 6);
}

/// Three chunks wait at GPU 0, of 1 us each on the way to GPU 1. That of GPU 2 comes last but has 4 us more
/// to go: sent first, all end at 5 us instead of 7.
TEST(Neighbours, PlaceFirstWhatHasLoadedLinksAhead) {
  const Topology topology{TopologyData{
      "line", "", std::vector<Node>(3), {{NodeId{0}, NodeId{1}, 1, 0}, {NodeId{1}, NodeId{2}, 0.25, 0}}, {}}};
  const std::vector<GpuId> near{GpuId{1}};
  const Demand demand(Collective::custom, 3e3, 3,
                      {{GpuId{0}, 1e3, near}, {GpuId{0}, 1e3, near}, {GpuId{0}, 1e3, {GpuId{2}}}}, 1);
  const PlanSpace space = make_plan_space(topology, demand);
  const auto to = [&](int gpu) { return space.into[static_cast<std::size_t>(gpu)].front(); };
  const TransferPlan plan{
      {{ChunkId{0}, to(1)}, {ChunkId{1}, to(1)}, {ChunkId{2}, to(1)}, {ChunkId{2}, to(2), 2}}};
  SurveyedPlan incumbent = survey(placed_forward(plan, space, {0, 1, 2, 3}), space);
  EXPECT_DOUBLE_EQ(incumbent.plan.quality.finish_us, 7);
  incumbent.latest_start_us = {0, 1, 2, 3};  // of the order that it has, not of a better one
  constexpr double kNoPlanIsNear = 8;        // so that none is justified
  double best_us = 7;
  Random random(1);
  for (int i = 0; i < 20; ++i)
    best_us = std::min(best_us, loaded_first(incumbent, space, kNoPlanIsNear, random)->quality.finish_us);
  EXPECT_DOUBLE_EQ(best_us, 5);
}

/// GPU 0 has a chunk of 4 us for GPUs 1 and 2 behind the same switch: sent twice it ends at 10 us, copied
/// at 6.
TEST(Neighbours, LetASwitchCopy) {
  for (const bool multicast : {true, false}) {
    std::vector<Node> nodes(3);
    nodes.push_back({.kind = NodeKind::switch_, .name = "sw", .multicast = multicast});
    std::vector<Link> links;
    for (const int g : {0, 1, 2}) {
      links.push_back({NodeId{g}, NodeId{3}, 1, 0.5});
      links.push_back({NodeId{3}, NodeId{g}, 1, 0.5});
    }
    const Topology topology{TopologyData{"star", "", nodes, links, {}}};
    const Demand demand(Collective::custom, 4e3, 3, {{GpuId{0}, 4e3, {GpuId{1}, GpuId{2}}}}, 1);
    PlanSpace space = make_plan_space(topology, demand);
    EXPECT_EQ(space.may_copy(), multicast);
    if (!multicast) continue;
    const auto hop_to = [&](int gpu) { return space.hops_between(GpuId{0}, GpuId{gpu}).front(); };
    const TransferPlan twice{{{ChunkId{0}, hop_to(1)}, {ChunkId{0}, hop_to(2)}}};
    const SurveyedPlan incumbent = survey(placed_forward(twice, space, {0, 1}), space);
    EXPECT_DOUBLE_EQ(incumbent.plan.quality.finish_us, 9);
    EXPECT_DOUBLE_EQ(incumbent.load[0], 8.0 / 9);
    std::optional<TransferPlan> best;
    Random random(1);
    for (int i = 0; i < 40; ++i) {
      const auto moved = copied(incumbent, space, 0, random);
      if (moved && (!best || moved->quality < best->quality)) best = moved;
    }
    ASSERT_TRUE(best);
    EXPECT_DOUBLE_EQ(best->quality.finish_us, 5);
    EXPECT_DOUBLE_EQ(link_loads(*best, space)[0], 4.0 / 5);  // of one transfer
    EXPECT_EQ(latest_starts(*best, space), (std::vector<double>{0, 0}));
    const Schedule schedule = schedule_of(*best, space);
    EXPECT_EQ(schedule.sends.size(), 3U);
    const ReplayResult replayed = replay(topology, demand, schedule.sends);
    ASSERT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_DOUBLE_EQ(replayed.finish_us, 5);
    const auto again = plan_of(schedule, space);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->quality, best->quality);
  }
}

TEST(TransferPlan, OfACopyAtTheRateOfItsSlowestLinkHasTheOrderAlone) {
  std::vector<Node> nodes(3);
  nodes.push_back({.kind = NodeKind::switch_, .multicast = true});
  const Topology topology{TopologyData{
      "star",
      "",
      nodes,
      {{NodeId{0}, NodeId{3}, 1, 1}, {NodeId{3}, NodeId{1}, 1, 1}, {NodeId{3}, NodeId{2}, 0.5, 1}}}};
  const Demand demand = make_demand(Collective::broadcast, 1e3, 3, 1);
  const Schedule copied{
      {{ChunkId{0}, LinkId{0}, 0, 2, 3}, {ChunkId{0}, LinkId{1}, 1, 3, 4}, {ChunkId{0}, LinkId{2}, 1, 3, 4}},
      4};
  ASSERT_TRUE(replay(topology, demand, copied.sends).valid());
  PlanSpace space = make_plan_space(topology, demand);
  EXPECT_FALSE(plan_of(copied, space));
  const auto order = order_of(copied, space);
  ASSERT_TRUE(order);
  EXPECT_TRUE(order->waits);
  // One after the other: 1 us at 1 GB/s, then 2 us at 0.5 GB/s and both latencies.
  const TransferPlan placed = placed_forward(order->plan, space, starts_of(order->plan));
  EXPECT_DOUBLE_EQ(placed.quality.finish_us, 5);
  const ReplayResult replayed = replay(topology, demand, schedule_of(placed, space).sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, 5);
}

/// Neighbours of neighbours, whatever they are worth, split in halves in the end.
TEST(Neighbours, StaySchedulesWhereSwitchesCopy) {
  for (const auto& [family, parameters] :
       {std::pair<std::string, Parameters>{"rails", {{"boxes", "2"}, {"gpus", "4"}, {"rails", "2"}}},
        {"star", {{"chassis", "4"}, {"gpus", "3"}}},
        {"fat_tree", {{"leaves", "3"}, {"gpus", "3"}, {"spines", "2"}, {"uplink_GBps", "200"}}}}) {
    const auto topology = std::make_shared<const Topology>(generate_topology(family, parameters));
    const Demand demand = make_demand(Collective::allgather, 1e6, topology->num_gpus(), 2);
    const Schedule start = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
    PlanSpace space = make_plan_space(*topology, demand);
    SurveyedPlan incumbent = survey(*plan_of(start, space), space);
    std::size_t copies = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      auto neighbour = neighbour_of(incumbent, space, 0, seed);
      if (!neighbour) continue;
      const Schedule schedule = schedule_of(*neighbour, space);
      const ReplayResult replayed = replay(*topology, demand, schedule.sends);
      ASSERT_TRUE(replayed.valid()) << family << ", seed " << seed << ": " << *replayed.violation;
      EXPECT_NEAR(replayed.finish_us, neighbour->quality.finish_us, 1e-6);
      const auto again = plan_of(schedule, space);
      ASSERT_TRUE(again) << family << ", seed " << seed;
      EXPECT_NEAR(again->quality.finish_us, neighbour->quality.finish_us, 1e-6);
      for (const PlannedTransfer& t : neighbour->transfers) copies += t.copy_of >= 0 ? 1 : 0;
      drop_useless(*neighbour, space);
      incumbent = survey(std::move(*neighbour), space);
    }
    EXPECT_GT(copies, 0U) << family;
    const PlanSpace halves = with_chunks(space, 4);
    const TransferPlan split = split_in_halves(incumbent.plan, halves);
    const TransferPlan placed = placed_forward(split, halves, starts_of(split));
    EXPECT_NEAR(replay(*topology, halves.demand, schedule_of(placed, halves).sends).finish_us,
                placed.quality.finish_us, 1e-6);
  }
}

/// Four GPUs, a link of 1 GB/s and 1 us from each to each; 1e6 bytes take 1001 us.
std::shared_ptr<const Topology> each_to_each() {
  TopologyData data{"each to each", "", std::vector<Node>(4), {}};
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) data.links.push_back({NodeId{from}, NodeId{to}, 1, 1});
    }
  }
  return std::make_shared<const Topology>(std::move(data));
}

/// A plan in which chunk c comes to g from source[c][g] (-1: it has begun there).
TransferPlan plan_from(const std::vector<std::vector<int>>& source, const PlanSpace& space) {
  TransferPlan plan;
  for (std::size_t c = 0; c < source.size(); ++c) {
    const auto first = static_cast<int>(plan.transfers.size());
    std::vector<int> bringer(source[c].size(), -1);
    int next = first;
    for (std::size_t g = 0; g < source[c].size(); ++g) {
      if (source[c][g] >= 0) bringer[g] = next++;
    }
    for (std::size_t g = 0; g < source[c].size(); ++g) {
      if (source[c][g] < 0) continue;
      const auto from = static_cast<std::size_t>(source[c][g]);
      const auto hop = std::ranges::find_if(space.hops, [&](const Hop& h) {
        return h.links.size() == 1 && h.src == GpuId{from} && h.dst == GpuId{g};
      });
      plan.transfers.push_back(
          {ChunkId{c}, static_cast<int>(hop - space.hops.begin()), bringer[from], -1, 0});
    }
  }
  return placed_forward(plan, space, std::vector<double>(plan.transfers.size(), 0));
}

void expect_schedule(const TransferPlan& plan, const PlanSpace& space, double finish_us) {
  const ReplayResult replayed = replay(*space.topology, space.demand, schedule_of(plan, space).sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, finish_us);
  EXPECT_DOUBLE_EQ(plan.quality.finish_us, finish_us);
}

TEST(Merging, TakesAllChangesThatDoNotMeet) {
  // Chunks of GPUs 0 and 2 come to the GPUs after them one after the other; each neighbour mends one of them.
  const auto fabric = each_to_each();
  const PlanSpace space = make_plan_space(*fabric, make_demand(Collective::allgather, 4e6, 4, 1));
  const std::vector<int> direct[] = {{-1, 0, 0, 0}, {1, -1, 1, 1}, {2, 2, -1, 2}, {3, 3, 3, -1}};
  const std::vector<int> detour[] = {{-1, 0, 1, 0}, {2, 2, -1, 1}};  // to 2 over 1; to 1 directly, 3 over 1
  const TransferPlan incumbent = plan_from({detour[0], direct[1], {2, 2, -1, 1}, direct[3]}, space);
  const std::vector<TransferPlan> neighbours{plan_from({direct[0], direct[1], detour[1], direct[3]}, space),
                                             plan_from({detour[0], direct[1], direct[2], direct[3]}, space)};
  expect_schedule(incumbent, space, 2002);
  for (const TransferPlan& neighbour : neighbours) expect_schedule(neighbour, space, 2002);
  expect_schedule(merged(incumbent, neighbours, space), space, 1001);
}

TEST(Merging, TheFirstOfTwoThatMeetWins) {
  // GPU 1 would have the chunk from 2, and 2 from 1: the chunk is that of the first neighbour in all.
  const auto fabric = each_to_each();
  const PlanSpace space = make_plan_space(*fabric, make_demand(Collective::broadcast, 1e6, 4, 1));
  const TransferPlan incumbent = plan_from({{-1, 3, 3, 0}}, space);
  const TransferPlan first = plan_from({{-1, 2, 0, 0}}, space);
  const TransferPlan second = plan_from({{-1, 0, 1, 0}}, space);
  expect_schedule(incumbent, space, 2002);
  const TransferPlan both = merged(incumbent, std::vector{first, second}, space);
  expect_schedule(both, space, 2002);
  for (const PlannedTransfer& t : both.transfers) {
    if (space.hop(t).dst == GpuId{1}) {
      EXPECT_EQ(space.hop(t).src, GpuId{2});
    }
    if (space.hop(t).dst == GpuId{2}) {
      EXPECT_EQ(space.hop(t).src, GpuId{0});
    }
  }
}

TEST(Merging, GivesSchedulesWhereSwitchesCopyAndDataIsRelayed) {
  const Topology shapes[] = {generate_topology("star", {{"chassis", "3"}, {"gpus", "2"}}),
                             generate_topology("torus", {{"dims", "3x3"}})};
  for (const Topology& shape : shapes) {
    TopologyData data = shape.data();
    for (Node& node : data.nodes) node.multicast = node.kind == NodeKind::switch_;
    const auto topology = std::make_shared<const Topology>(std::move(data));
    for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
      const Demand demand = make_demand(collective, 9e6, topology->num_gpus(), 1);
      PlanSpace space = make_plan_space(*topology, demand);
      const Schedule start = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
      const SurveyedPlan incumbent = survey(*plan_of(start, space), space);
      std::vector<TransferPlan> neighbours;
      for (std::uint64_t seed = 1; neighbours.size() < 12; ++seed) {
        if (auto plan = neighbour_of(incumbent, space, 1, seed)) {
          drop_useless(*plan, space);
          neighbours.push_back(std::move(*plan));
        }
      }
      const TransferPlan all = merged(incumbent.plan, neighbours, space);
      expect_schedule(all, space, all.quality.finish_us);
    }
  }
}

}  // namespace
}  // namespace rondo::test_plans
