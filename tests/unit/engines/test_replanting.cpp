#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "replanting.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/local_search/streams.hpp"

/// Plans whose trees are taken out and grown anew.
namespace rondo::test_replanting {
namespace {

using Parameters = std::map<std::string, std::string>;

/// Three GPUs at a switch that copies, 1 GB/s and 0.5 us a link.
Topology star() {
  std::vector<Node> nodes(3);
  nodes.push_back({.kind = NodeKind::switch_, .name = "sw", .multicast = true});
  std::vector<Link> links;
  for (const int g : {0, 1, 2}) {
    links.push_back({NodeId{g}, NodeId{3}, 1, 0.5});
    links.push_back({NodeId{3}, NodeId{g}, 1, 0.5});
  }
  return Topology{TopologyData{"star", "", nodes, links, {}}};
}

/// 4e3 bytes from GPU 0 to both others, one after the other: 4 us and 4 + 4 us on its link, 1 us of latency.
TransferPlan one_after_another(const PlanSpace& space) {
  const auto hop_to = [&](int gpu) { return space.hops_between(GpuId{0}, GpuId{gpu}).front(); };
  return placed_forward({{{ChunkId{0}, hop_to(1)}, {ChunkId{0}, hop_to(2)}}}, space, {0, 1});
}

TEST(InsertionTimetable, TakesBackWhatLiesAmongOthers) {
  for (const bool is_shared : {false, true}) {
    const Topology topology{
        TopologyData{"link", "", std::vector<Node>(2), {{NodeId{0}, NodeId{1}, 1, 1}}, {}}};
    const Hop hop = make_hop(topology, std::vector<LinkId>{LinkId{0}});
    InsertionTimetable timetable(topology, InsertionTimetable::Reading::forwards);
    if (is_shared) timetable.reserve(slowed(hop, 2), 1e3, 100);  // [100, 102) at half the rate
    timetable.reserve(hop, 4e3, 0);
    timetable.reserve(hop, 2e3, 4);
    timetable.reserve(hop, 3e3, 6);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 2e3, 0), 9);
    timetable.release(hop, 2e3, 4);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 2e3, 0), 4);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 2.1e3, 0), 9);
    timetable.release(hop, 4e3, 0);
    timetable.release(hop, 3e3, 6);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 50e3, 0), 0);
  }
}

TEST(Forest, GrowsATreeThatASwitchCopies) {
  const Topology topology = star();
  const Demand demand = make_demand(Collective::broadcast, 4e3, 3, 1);
  const PlanSpace space = make_plan_space(topology, demand);
  ASSERT_TRUE(Forest::applies(space));
  Forest forest(one_after_another(space), space);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 9);
  EXPECT_DOUBLE_EQ(forest.load_us()[0], 8);
  const Forest::Tree before = forest.take_out(0);
  EXPECT_DOUBLE_EQ(forest.load_us()[0], 0);
  forest.set_prices(std::vector<double>(topology.num_links(), 1));
  forest.grow(0, 0);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 5);
  EXPECT_DOUBLE_EQ(forest.load_us()[0], 4);
  EXPECT_DOUBLE_EQ(forest.price_of(0), 12);  // three links
  TransferPlan plan = forest.plan();
  plan.quality = quality_of(plan.transfers, space);
  const ReplayResult replayed = replay(topology, demand, schedule_of(plan, space).sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, 5);
  forest.take_out(0);
  forest.put_back(0, before);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 9);
  EXPECT_DOUBLE_EQ(forest.load_us()[0], 8);
}

/// GPU 0 has a link to each of the others, and GPU 2 one to GPU 1.
TEST(Forest, LeadsPastDearLinks) {
  const Topology topology{
      TopologyData{"triangle",
                   "",
                   std::vector<Node>(3),
                   {{NodeId{0}, NodeId{1}, 1, 1}, {NodeId{0}, NodeId{2}, 1, 1}, {NodeId{2}, NodeId{1}, 1, 1}},
                   {}}};
  const PlanSpace space = make_plan_space(topology, make_demand(Collective::broadcast, 1e3, 3, 1));
  const TransferPlan direct = placed_forward(
      {{{ChunkId{0}, space.into[1].front()}, {ChunkId{0}, space.into[2].front()}}}, space, {0, 1});
  Forest forest(direct, space);
  forest.set_prices({1, 0, 0});
  forest.take_out(0);
  forest.grow(0, 1.5);  // directly 2 us + 1.5, over GPU 2 after 4
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 2);
  forest.take_out(0);
  forest.grow(0, 2.5);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 4);
  EXPECT_DOUBLE_EQ(forest.price_of(0), 0);
}

TEST(Replanting, FindsTheCopyOfASwitch) {
  const Topology topology = star();
  const PlanSpace space = make_plan_space(topology, make_demand(Collective::broadcast, 4e3, 3, 1));
  const auto found = replanted(survey(one_after_another(space), space), space, 5, 4, 1).plan;
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->quality.finish_us, 5);
  // Nothing is earlier.
  EXPECT_FALSE(replanted(survey(*found, space), space, 5, 4, 1).plan);
}

/// GPUs 0 and 1, 2 and 3 are near each other, 1.5 us; switches that do not copy join both pairs, 1 GB/s and
/// 10 us from GPU to GPU.
Topology two_pairs() {
  std::vector<Node> nodes(4);
  for (const char* name : {"left", "right"})
    nodes.push_back({.kind = NodeKind::switch_, .name = name, .multicast = false});
  std::vector<Link> links{{NodeId{4}, NodeId{5}, 1, 8}, {NodeId{5}, NodeId{4}, 1, 8}};
  for (const int g : {0, 1, 2, 3}) {
    links.push_back({NodeId{g}, NodeId{4 + g / 2}, 1, 1});
    links.push_back({NodeId{4 + g / 2}, NodeId{g}, 1, 1});
    links.push_back({NodeId{g}, NodeId{g ^ 1}, 1e6, 1.5});
  }
  return Topology{TopologyData{"two pairs", "", nodes, links, {}}};
}

/// 1e3 bytes of each GPU. Where all go directly, four follow one another between the switches: 10 + 4 us. A
/// tree that is alone in its time is not earlier over the near link, 11 + 1.5 us against 10 + 2: only prices
/// show what the link between the switches is worth, although it is idle for 10 us. With two on it the last
/// one is near the first of its pair at 12 us and there at 13.5.
TEST(Replanting, SparesLinksThatLatencyLeavesIdle) {
  const Topology topology = two_pairs();
  const PlanSpace space = make_plan_space(topology, make_demand(Collective::allgather, 4e3, 4, 1));
  ASSERT_TRUE(may_replant(space));
  TransferPlan direct;
  std::vector<double> order;
  for (std::size_t chunk = 0; chunk < 4; ++chunk) {
    for (std::size_t to = 0; to < 4; ++to) {
      const auto& into = space.into[to];
      const auto hop = std::ranges::find_if(into, [&](int h) {
        const Hop& one = space.hops[static_cast<std::size_t>(h)];
        return one.src.index() == chunk && (to / 2 != chunk / 2 || one.links.size() == 1);
      });
      if (to == chunk) continue;
      ASSERT_NE(hop, into.end());
      direct.transfers.push_back({ChunkId{chunk}, *hop});
      order.push_back(static_cast<double>(order.size()));
    }
  }
  const SurveyedPlan incumbent = survey(placed_forward(direct, space, order), space);
  EXPECT_DOUBLE_EQ(incumbent.plan.quality.finish_us, 14);
  const auto found = replanted(incumbent, space, 12, 16, 1).plan;
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->quality.finish_us, 13.5, 1e-3);
}

/// GPUs 0 and 3 at switch p, GPUs 1 and 2 at switch q; from p to q directly or over switch r, 1 GB/s and 0.5
/// us a link. GPU 0 sends 4e3 bytes; over q they could be at GPU 2 from 1 us on.
struct TwoWays {
  Topology topology = [] {
    std::vector<Node> nodes(4);
    for (const char* name : {"p", "q", "r"}) nodes.push_back({.kind = NodeKind::switch_, .name = name});
    std::vector<Link> links;
    for (const auto& [from, to] : {std::pair{0, 4},
                                   {4, 5},
                                   {4, 6},
                                   {6, 5},
                                   {5, 1},
                                   {5, 2},
                                   {1, 5},
                                   {2, 5},
                                   {5, 4},
                                   {4, 0},
                                   {3, 4},
                                   {4, 3}})
      links.push_back({NodeId{from}, NodeId{to}, 1, to == 1 ? 0.9 : 0.5});
    return Topology{TopologyData{"two ways", "", nodes, links, {}}};
  }();
  Demand demand{
      Collective::custom,
      4.8e3,
      4,
      {{GpuId{0}, 4e3, {GpuId{1}, GpuId{2}, GpuId{3}}}, {GpuId{1}, 0.8e3, {GpuId{0}, GpuId{2}, GpuId{3}}}},
      1};
  PlanSpace space = make_plan_space(topology, demand);
  /// Until 1.3 us the link from q to GPU 2 carries this one, so that q cannot copy the other one; by r that
  /// would be there at 1.5 us, but what is in q once comes in no second time.
  TransferPlan of_gpu_1{{{ChunkId{1}, hop(1, 2), -1, -1, 0},
                         {ChunkId{1}, hop(1, 0), -1, -1, 20},
                         {ChunkId{1}, hop(1, 3), -1, -1, 30}}};

  TwoWays() {
    space.add(make_hop(topology, std::vector<LinkId>{LinkId{0}, LinkId{2}, LinkId{3}, LinkId{5}}));
  }
  int hop(int from, int to) const { return space.hops_between(GpuId{from}, GpuId{to}).front(); }
};

TEST(Justification, CopiesIntoNoSwitchTwice) {
  const TwoWays ways;
  TransferPlan plan = ways.of_gpu_1;
  for (const int to : {3, 1, 2}) plan.transfers.push_back({ChunkId{0}, ways.hop(0, to)});
  const TransferPlan placed =
      placed_forward(plan, ways.space, {0, 6, 7, 1, 2, 3}, {.free = {0, 0, 0, 0, 1, 1}, .may_copy = true});
  const ReplayResult replayed = replay(ways.topology, ways.demand, schedule_of(placed, ways.space).sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, 9.5);  // after the first one has left GPU 0
}

TEST(Forest, CopiesIntoNoSwitchTwice) {
  const TwoWays ways;
  TransferPlan plan = ways.of_gpu_1;
  for (const int to : {1, 2, 3})
    plan.transfers.push_back({ChunkId{0}, ways.hop(0, to), -1, -1, 40.0 + 4 * to});
  ASSERT_TRUE(Forest::applies(ways.space));
  Forest forest(plan, ways.space);
  forest.take_out(0);
  // To GPU 3 at 5 us. To GPU 2 not at 5.8 then, so that r is next, 6 us. To GPU 1 at 5.9 us, over q.
  forest.grow(0, 0);
  EXPECT_DOUBLE_EQ(forest.ends_us(0), 9.5);
}

TEST(Replanting, IsForDataThatAllWantAndSoonestWhereSwitchesAre) {
  const Topology mesh = generate_topology("mesh", {{"dims", "3x3"}});
  const PlanSpace plain = make_plan_space(mesh, make_demand(Collective::allgather, 1e3, 9, 1));
  EXPECT_TRUE(may_replant(plain));
  EXPECT_FALSE(passes_switches(plain));
  EXPECT_FALSE(begins_with_replanting(mesh, make_demand(Collective::allgather, 1e3, 9, 1)));
  const Topology pairs = two_pairs();
  EXPECT_TRUE(begins_with_replanting(pairs, make_demand(Collective::allgather, 1e3, 4, 1)));
  EXPECT_FALSE(may_replant(make_plan_space(pairs, make_demand(Collective::alltoall, 1e3, 4, 1))));
}

TEST(Replanting, GivesSchedulesAndTheSameForASeed) {
  for (const auto& [family, parameters] :
       {std::pair<std::string, Parameters>{"rails", {{"boxes", "2"}, {"gpus", "4"}, {"rails", "2"}}},
        {"star", {{"chassis", "4"}, {"gpus", "3"}}},
        {"mesh", {{"dims", "3x3"}}},
        {"fat_tree", {{"leaves", "3"}, {"gpus", "3"}, {"spines", "2"}, {"uplink_GBps", "200"}}},
        {"star", {{"chassis", "4"}, {"gpus", "3"}, {"multicast", "false"}}}}) {
    const auto topology = std::make_shared<const Topology>(generate_topology(family, parameters));
    const Demand demand = make_demand(Collective::allgather, 1e6, topology->num_gpus(), 2);
    const Schedule start = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
    PlanSpace space = make_plan_space(*topology, demand);
    // Backwards order wastes time that can be won back.
    TransferPlan plan = *plan_of(start, space);
    std::vector<double> key = starts_of(plan);
    for (double& start_us : key) start_us = -start_us;
    const SurveyedPlan incumbent = survey(placed_forward(plan, space, key), space);
    int earlier = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const auto [found, took_long] = replanted(incumbent, space, 0, 8, seed);
      EXPECT_FALSE(took_long) << family;
      if (!found) continue;
      earlier += found->quality < incumbent.plan.quality ? 1 : 0;
      const ReplayResult replayed = replay(*topology, demand, schedule_of(*found, space).sends);
      ASSERT_TRUE(replayed.valid()) << family << ", seed " << seed << ": " << *replayed.violation;
      EXPECT_NEAR(replayed.finish_us, found->quality.finish_us, 1e-6);
      EXPECT_EQ(replanted(incumbent, space, 0, 8, seed).plan->quality, found->quality);
    }
    EXPECT_GT(earlier, 0) << family;
  }
}

/// All GPUs of a leaf share few links to spines, which a plan of many chunks leaves idle for moments alone.
TEST(Replanting, EndsWhereTreesTakeLongToGrow) {
  const Parameters parameters{{"leaves", "4"}, {"gpus", "6"}, {"spines", "3"}, {"multicast", "false"}};
  const auto topology = std::make_shared<const Topology>(generate_topology("fat_tree", parameters));
  const Demand demand = make_demand(Collective::allgather, 1e6, topology->num_gpus(), 8);
  PlanSpace space = make_plan_space(*topology, demand);
  const Schedule start = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
  const SurveyedPlan incumbent = survey(*plan_of(start, space), space);
  EXPECT_TRUE(replanted(incumbent, space, 0, 8, 1).took_long);
}

/// The first time from which all links of a hop are free, each as much later as they come.
TEST(InsertionTimetable, FindsTheFirstRoomOnAllLinksOfAHop) {
  const Topology topology =
      generate_topology("dragonfly", {{"groups", "4"}, {"routers", "2"}, {"hosts", "2"}});
  const PlanSpace space = make_plan_space(topology, make_demand(Collective::allgather, 1e6, 16, 1));
  for (const auto reading : {InsertionTimetable::Reading::forwards, InsertionTimetable::Reading::backwards}) {
    InsertionTimetable timetable(topology, reading);
    Random random(7);
    std::map<LinkId, std::vector<double>> ends_us;
    for (int i = 0; i < 600; ++i) {
      const Hop& hop = space.hops[random.below(space.hops.size())];
      const double bytes = 1e3 * static_cast<double>(1 + random.below(9));
      const double from_us = 20 * random.unit();
      const auto offset_us = [&](const HopLink& part) {
        const double forwards = part.offset_us_of(bytes);
        return reading == InsertionTimetable::Reading::forwards
                   ? forwards
                   : hop.duration_us(bytes) - forwards - part.occupied_us(bytes);
      };
      const double start_us = timetable.earliest_start(hop, bytes, from_us);
      ASSERT_GE(start_us, from_us);
      ASSERT_TRUE(timetable.is_free(hop, bytes, start_us, 0));
      ASSERT_TRUE(start_us == from_us || !timetable.is_free(hop, bytes, from_us, 0));
      for (const HopLink& part : hop.links) {
        for (const double end_us : ends_us[part.link]) {
          const double other_us = end_us - offset_us(part);
          if (other_us < from_us || other_us > start_us - 1e-6) continue;
          ASSERT_FALSE(timetable.is_free(hop, bytes, other_us, 0));
        }
      }
      ASSERT_GT(timetable.earliest_start(hop, bytes, from_us, 0, start_us - 1e-3), start_us - 1e-3);
      timetable.reserve(hop, bytes, start_us);
      for (const HopLink& part : hop.links)
        ends_us[part.link].push_back(start_us + offset_us(part) + part.occupied_us(bytes));
    }
  }
}

}  // namespace
}  // namespace rondo::test_replanting
