#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo switch_engine();
}  // namespace rondo

namespace rondo::test_switches {
namespace {

using Fabric = std::shared_ptr<const Topology>;
using Parameters = std::map<std::string, std::string>;

Schedule all_reduced(const Fabric& topology, double bytes, int chunks) {
  const Demand demand = make_demand(Collective::allreduce, bytes, topology->num_gpus(), chunks);
  Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
  const PreparedEngine engine = switch_engine().prepare({topology, demand.with_chunks(1)}, {}, tools);
  const Schedule schedule = *engine(demand, {}).schedule;
  finish_of(*topology, demand, schedule);
  return schedule;
}

Fabric adding(const std::string& family, Parameters parameters) {
  parameters["reduce"] = "true";
  return generated(family, parameters);
}

TopologyData adding_star(int gpus) {
  TopologyData data = star(gpus)->data();
  data.nodes.back().reduce = true;
  return data;
}

Fabric made(TopologyData data) {
  return std::make_shared<const Topology>(std::move(data));
}

// Everyone sends the buffer once and gets the sum back at the same time: 1000 us and two latencies.
TEST(SwitchEngine, OneSwitchAddsAndCopiesAtOnce) {
  const Schedule schedule = all_reduced(made(adding_star(4)), kMB, 1);
  EXPECT_NEAR(schedule.finish_us, 1002, 1e-6);
  EXPECT_EQ(schedule.sends.size(), 8U);
}

// One latency more for all of them.
TEST(SwitchEngine, ThoseNearTheSwitchWaitForThoseFarFromIt) {
  TopologyData data = adding_star(4);
  data.links.front().latency_us = 2;
  EXPECT_NEAR(all_reduced(made(data), kMB, 1).finish_us, 1003, 1e-6);
}

// A megabyte over 25 GB/s, four latencies of 0.5 us up to a spine and down again.
TEST(SwitchEngine, LeavesAddBeforeASpineDoes) {
  const Schedule schedule = all_reduced(adding("fat_tree", {{"leaves", "3"}, {"spines", "2"}}), kMB, 1);
  EXPECT_NEAR(schedule.finish_us, 42, 1e-6);
  EXPECT_EQ(schedule.sends.size(), 12U + 3 + 3 + 12);
}

// Three spines of 10 GB/s serve a GPU of 25 GB/s at a third of its rate each.
TEST(SwitchEngine, SpinesShareALinkEvenly) {
  const Fabric thin = adding("fat_tree", {{"leaves", "3"}, {"spines", "3"}, {"uplink_GBps", "10"}});
  EXPECT_LE(all_reduced(thin, 1e8, 300).finish_us, 1.01 * 1e8 / 25e3);
}

// A message costs 0.4 us once, however many links it takes.
TEST(SwitchEngine, PaysForOneMessageAtOnce) {
  const Parameters messages{
      {"leaves", "3"}, {"gpus", "3"}, {"message_us", "0.4"}, {"inter_message_us", "0.4"}};
  EXPECT_NEAR(all_reduced(adding("fat_tree", messages), kMB, 1).finish_us, 42.4, 1e-6);
}

// Of every rail a quarter of the buffer goes out of each box: 1 us and 2.5 us of latency thrice, and 1000 us
// of the network cards, of which the first chunk's way within its box is not yet a part.
TEST(SwitchEngine, ChassisAddUpBeforeTheRailsDo) {
  const Fabric rails = adding("rails", {{"boxes", "3"}, {"gpus", "4"}});
  const double card_us = 1e8 / 4 / 25e3;
  const Schedule schedule = all_reduced(rails, 1e8, 480);
  EXPECT_GE(schedule.finish_us, card_us);
  EXPECT_LE(schedule.finish_us, 1.01 * card_us + 5);

  TopologyData unnamed = rails->data();
  for (Node& node : unnamed.nodes) node.chassis.reset();
  EXPECT_DOUBLE_EQ(all_reduced(made(unnamed), 1e8, 480).finish_us, schedule.finish_us);
}

// All cards are at one switch, which would have each of them carry the whole buffer: 4000 us.
TEST(SwitchEngine, TakesGroupsWhereCardsAtOneSwitchWouldAllBeBusy) {
  const Fabric rails = adding("rails", {{"boxes", "3"}, {"gpus", "4"}, {"rails", "1"}});
  EXPECT_LE(all_reduced(rails, 1e8, 480).finish_us, 1.01 * 1000 + 5);
}

// Three of the four GPUs of a chassis have links between, 12.5 GB/s each; within it sums go around the ring.
TEST(SwitchEngine, SumsMeetBetweenRings) {
  const Parameters rings{{"chassis", "3"}, {"gpus", "4"}, {"intra", "ring"}, {"uplinks", "3"}};
  const double uplinks_us = 1e8 / 37.5e3;
  EXPECT_LE(all_reduced(adding("star", rings), 1e8, 1200).finish_us, 1.01 * uplinks_us);
}

// Of one chassis an uplink is at half its rate. What takes it keeps half of one uplink of each other chassis
// busy, beside which nothing else goes at full rate: the other uplinks have to do for the rest.
TEST(SwitchEngine, WhatIsSlowGoesSideBySide) {
  TopologyData data = adding("star", {{"chassis", "3"}, {"gpus", "4"}, {"uplinks", "2"}})->data();
  for (Link& link : data.links) {
    const bool is_of_gpu_0 = link.src == NodeId{0} || link.dst == NodeId{0};
    if (is_of_gpu_0 && link.bandwidth_GBps < 50) link.bandwidth_GBps /= 2;
  }
  EXPECT_LE(all_reduced(made(data), 1e8, 1200).finish_us, 1.01 * 1e8 / 18.75e3);
}

// What goes up through a leaf and what comes down through it at the same instant would be one sum.
TEST(SwitchEngine, IsRefusedWhereNoTimePassesBetweenSwitches) {
  const Parameters none{{"link_latency_us", "0"}, {"uplink_latency_us", "0"}};
  const Demand demand = make_demand(Collective::allreduce, kMB, 16, 1);
  EXPECT_FALSE(switch_engine().applicable({adding("fat_tree", none), demand}, {}));
  TopologyData data = adding_star(16);
  for (Link& link : data.links) link.latency_us = 0;
  EXPECT_NEAR(all_reduced(made(data), kMB, 1).finish_us, 1000, 1e-6);
}

TEST(SwitchEngine, IsRefusedWhereSwitchesDoNotAddForAll) {
  const auto refuses = [](const Fabric& topology) {
    const Demand demand = make_demand(Collective::allreduce, kMB, topology->num_gpus(), 1);
    EXPECT_FALSE(switch_engine().applicable({topology, demand}, {}));
    EXPECT_THROW(all_reduced(topology, kMB, 1), Error);
  };
  refuses(star(4));
  TopologyData data = adding("star", {{"intra", "switch"}})->data();
  data.nodes.back().reduce = false;  // between the chassis
  refuses(made(data));
  data = adding_star(4);
  data.links.front().bandwidth_steps = {{0, 1}, {10, 0.5}};
  refuses(made(data));
}

}  // namespace
}  // namespace rondo::test_switches
