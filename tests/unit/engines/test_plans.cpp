#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "insertion_timetable.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"

/// Plans, the passes over them and their neighbours.
namespace rondo {
namespace {

using Reading = InsertionTimetable::Reading;
using Parameters = std::map<std::string, std::string>;

/// GPU 0 -> 1 -> 2, 1 GB/s, 1 us; 1e3 bytes take 1 us on a link.
Topology line(std::vector<SharedBandwidth> shared = {}) {
  return Topology{TopologyData{"line",
                               "",
                               std::vector<Node>(3),
                               {{NodeId{0}, NodeId{1}, 1, 1}, {NodeId{1}, NodeId{2}, 1, 1}},
                               std::move(shared)}};
}

Hop hop_over(const Topology& topology, int link) {
  return make_hop(topology, std::vector<LinkId>{LinkId{link}});
}

TEST(InsertionTimetable, FillsWhatIsLeftFree) {
  const Topology topology = line();
  const Hop hop = hop_over(topology, 0);
  InsertionTimetable timetable(topology, Reading::forwards);
  timetable.reserve(hop, 4e3, 0);   // [0, 4)
  timetable.reserve(hop, 4e3, 10);  // [10, 14)
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 6e3, 0), 4);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 7e3, 0), 14);
  timetable.reserve(hop, 6e3, 4);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 1e3, 0), 14);
}

TEST(InsertionTimetable, KeepsLinksForMessageCosts) {
  TopologyData data = line().data();
  for (Link& link : data.links) link.message_us = 0.5;
  const Topology topology(std::move(data));
  const Hop hop = hop_over(topology, 0);
  for (const Reading reading : {Reading::forwards, Reading::backwards}) {
    InsertionTimetable timetable(topology, reading);
    timetable.reserve(hop, 4e3, 0);  // 4.5 us
    timetable.reserve(hop, 4e3, 10);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 5e3, 0), 4.5);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 5.1e3, 0), 14.5);
  }
}

TEST(InsertionTimetable, SharesBandwidth) {
  const Topology topology = line({{"nic", {LinkId{0}, LinkId{1}}, 1}});
  InsertionTimetable timetable(topology, Reading::forwards);
  timetable.reserve(hop_over(topology, 0), 4e3, 2);  // [2, 6)
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop_over(topology, 1), 2e3, 0), 0);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop_over(topology, 1), 3e3, 0), 6);
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
    const Demand demand = make_demand(Collective::allgather, 1e8, topology->num_gpus(), 2);
    const Schedule schedule = *prepare_list({topology, demand}, {}, {})(demand, {}).schedule;
    PlanSpace space = make_plan_space(*topology, demand);
    const SurveyedPlan incumbent = survey(*plan_of(schedule, space), space);
    std::size_t others = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const TransferPlan neighbour = neighbour_of(incumbent, space, 0, seed);
      const Schedule one = schedule_of(neighbour, space);
      const ReplayResult replayed = replay(*topology, demand, one.sends);
      ASSERT_TRUE(replayed.valid()) << family << ", seed " << seed << ": " << *replayed.violation;
      EXPECT_NEAR(replayed.finish_us, neighbour.quality.finish_us, 1e-6);
      EXPECT_EQ(neighbour_of(incumbent, space, 0, seed).quality, neighbour.quality);
      others += neighbour.quality != incumbent.plan.quality ? 1 : 0;
    }
    EXPECT_GT(others, 5U) << family;
  }
}

}  // namespace
}  // namespace rondo
