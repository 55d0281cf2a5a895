#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/graph/arborescence.hpp"
#include "rondo/solvers/solvers.hpp"
#include "steps/even_rates.hpp"
#include "steps/paths_between.hpp"
#include "steps/spanning_packing.hpp"
#include "steps/task_scheduler.hpp"
#include "steps/tree_makers.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo spanning_engine();
}  // namespace rondo

namespace rondo::test_spanning {
namespace {

std::vector<GpuId> all_gpus(const Topology& topology) {
  std::vector<GpuId> gpus;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) gpus.push_back(GpuId(g));
  return gpus;
}

SpanningPacking pack(const Topology& topology) {
  return pack_spanning_trees(topology, all_gpus(topology), make_clp_column_master, 400, {});
}

// A task that rests on two waits for the one that arrives last, though it is the first to start.
TEST(TaskScheduler, ATaskWaitsForAllThatItRestsOn) {
  const auto topology = fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 2, 1, 9), link(1, 2), link(2, 3)});
  const Demand demand = make_demand(Collective::reduce, 1000, 4, 1, GpuId{3});
  TaskGraph graph;
  for (int l = 0; l < 3; ++l) graph.hops.push_back(make_hop(*topology, std::vector{LinkId{l}}));
  const int far = graph.add(0, ChunkId{0}, SendOp::reduce, {});
  const int near = graph.add(1, ChunkId{0}, SendOp::reduce, {});
  graph.add(2, ChunkId{0}, SendOp::reduce, {far, near});
  EXPECT_EQ(times_to_go_us(graph, demand), (std::vector<double>{12, 4, 2}));
  const Schedule schedule = schedule_tasks(*topology, demand, graph, {0, 0, 0}, 0);
  EXPECT_EQ(schedule.finish_us, 12);
  EXPECT_TRUE(replay(*topology, demand, schedule.sends).valid());
}

TEST(TaskScheduler, TheLeastRankGoesFirst) {
  const auto topology = fabric({gpu(), gpu()}, {link(0, 1)});
  const Demand demand = make_demand(Collective::broadcast, 2000, 2, 2);
  TaskGraph graph{{make_hop(*topology, std::vector{LinkId{0}})}, {}};
  graph.add(0, ChunkId{0}, SendOp::copy, {});
  graph.add(0, ChunkId{1}, SendOp::copy, {});
  EXPECT_EQ(schedule_tasks(*topology, demand, graph, {1, 0}, 0).sends.front().chunk, ChunkId{1});
}

// By rank what nothing waits for goes first; backwards in time it is the last to end.
TEST(TaskScheduler, ThereAndBackBeginsWithWhatOthersWaitFor) {
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2)});
  const Demand demand = make_demand(Collective::broadcast, 2000, 3, 2);
  TaskGraph graph;
  for (int l = 0; l < 2; ++l) graph.hops.push_back(make_hop(*topology, std::vector{LinkId{l}}));
  graph.add(0, ChunkId{0}, SendOp::copy, {});
  const int waited_for = graph.add(0, ChunkId{1}, SendOp::copy, {});
  graph.add(1, ChunkId{1}, SendOp::copy, {waited_for});
  EXPECT_EQ(schedule_tasks(*topology, demand, graph, {0, 1, 2}, 0).finish_us, 5);
  const Schedule schedule = schedule_tasks_there_and_back(*topology, demand, graph, {0, 1, 2}, 0);
  EXPECT_EQ(schedule.finish_us, 4);
  EXPECT_EQ(schedule.sends.front().chunk, ChunkId{1});
}

std::vector<double> rates_over(const std::vector<double>& GBps, int most) {
  std::vector<Link> links;
  std::vector<Node> nodes(GBps.size(), gpu());
  const auto middle = static_cast<int>(nodes.size());
  for (std::size_t g = 0; g < GBps.size(); ++g) {
    links.push_back(link(static_cast<int>(g), middle, GBps[g]));
    links.push_back(link(middle, static_cast<int>(g), GBps[g]));
  }
  nodes.push_back(network_switch());
  const auto topology = fabric(nodes, links);
  std::vector<Hop> hops;
  for (std::size_t g = 1; g < GBps.size(); ++g)
    hops.push_back(make_hop(*topology, std::vector{LinkId(2 * g), LinkId{1}}));
  std::vector<double> rates;
  for (const Hop& hop : at_even_rates(*topology, hops, most)) rates.push_back(hop.links.front().rate_GBps());
  return rates;
}

// Of 300 and 150 GB/s one rate fills both; of 25 and 17.5 a third of the slower one; then a quarter of that,
// or as little as the transfers at a time allow.
TEST(EvenRates, FillLinksOfDifferentBandwidthAlike) {
  EXPECT_EQ(rates_over({300, 300, 150}, 2), (std::vector<double>{150, 150}));
  EXPECT_EQ(rates_over({300, 300, 150}, 8), (std::vector<double>{37.5, 37.5}));
  const std::vector<double> thirds = rates_over({25, 25, 17.5}, 5);
  EXPECT_NEAR(thirds[0], 17.5 / 3, 1e-9);
  EXPECT_NEAR(thirds[1], 17.5 / 3, 1e-9);
  EXPECT_EQ(rates_over({50, 50, 50}, 1), (std::vector<double>{50, 50}));
}

// Three GPUs, all joined at 1 GB/s: three trees of two edges, each edge in two of them.
TEST(SpanningPacking, OfATriangleIsHalfAsLongAgain) {
  const SpanningPacking packing = pack(*generated("full", {{"gpus", "3"}, {"bandwidth_GBps", "1"}}));
  EXPECT_NEAR(packing.us_per_byte, 1e-3 * 2 / 3, 1e-9);
  EXPECT_NEAR(packing.bound_us_per_byte, 1e-3 * 2 / 3, 1e-7);
  double weight = 0;
  for (const WeightedTree& tree : packing.trees) {
    EXPECT_EQ(tree.gather.size(), 2 * 2U);
    weight += tree.weight;
  }
  EXPECT_NEAR(weight, 1, 1e-9);
}

// 1 and 2 reach each other cheaply, but one of them has to be reached from 0.
TEST(Arborescence, BreaksTheCheapestCycle) {
  const Digraph graph{3, {{0, 1}, {1, 2}, {2, 1}, {0, 2}}};
  const Arborescence tree = cheapest_arborescence(graph, {10, 1, 1, 8}, 0);
  EXPECT_EQ(tree.cost, 9);
  EXPECT_EQ(std::set<int>(tree.arcs.begin(), tree.arcs.end()), (std::set<int>{2, 3}));
  EXPECT_FALSE(std::isfinite(cheapest_arborescence(graph, {10, 1, 1, 8}, 1).cost));
}

// Sums and results take two of three links each, whatever the root: 4 / 3 of the data on each.
TEST(SpanningPacking, RootedTreesNeedNoLinksBack) {
  const auto ring = one_way_ring(3);
  const SpanningPacking packing = pack_rooted_trees(*ring, all_gpus(*ring), make_clp_column_master, 400, {});
  EXPECT_NEAR(packing.us_per_byte, 1e-3 * 4 / 3, 1e-7);
  EXPECT_NEAR(packing.bound_us_per_byte, 1e-3 * 4 / 3, 1e-6);
  for (const WeightedTree& tree : packing.trees) {
    EXPECT_GE(tree.root, 0);
    EXPECT_EQ(tree.gather.size(), 2U);
    EXPECT_EQ(tree.spread.size(), 2U);
  }
  EXPECT_THROW(pack(*ring), Error);
}

// At one switch any member can be reached from any other at the same cost.
TEST(SpanningPacking, RootedTreesAreShallowWhereThatCostsNothing) {
  const auto topology = star(8);
  const SpanningPacking packing =
      pack_rooted_trees(*topology, all_gpus(*topology), make_clp_column_master, 400, {});
  EXPECT_NEAR(packing.us_per_byte, 1e-3 * 2 * 7 / 8, 1e-6);
  double mean_depth = 0;
  for (const WeightedTree& tree : packing.trees) {
    std::vector<int> parent(8, -1);
    for (const MemberArc& arc : tree.spread) parent[static_cast<std::size_t>(arc.to)] = arc.from;
    int deepest = 0;
    for (int g = 0; g < 8; ++g) {
      int depth = 0;
      for (int at = g; at != tree.root; at = parent[static_cast<std::size_t>(at)]) ++depth;
      deepest = std::max(deepest, depth);
    }
    mean_depth += tree.weight * deepest;
  }
  EXPECT_LE(mean_depth, 2.5);
}

// Around a GPU that takes no part: it adds up what it passes on, so that every link carries the data once.
TEST(SpanningPacking, TreesGoOverRelays) {
  std::vector<Link> links;
  for (int g = 1; g < 4; ++g) {
    links.push_back(link(0, g));
    links.push_back(link(g, 0));
  }
  const auto topology = fabric({gpu(), gpu(), gpu(), gpu()}, links);
  const std::vector<GpuId> members{GpuId{1}, GpuId{2}, GpuId{3}};
  const SpanningPacking packing = pack_relay_trees(*topology, members, make_clp_column_master, 400, {});
  EXPECT_NEAR(packing.us_per_byte, 1e-3, 1e-9);
  EXPECT_EQ(packing.trees.front().gather.size(), 2 * 3U);
  EXPECT_THROW(pack_spanning_trees(*topology, members, make_clp_column_master, 400, {}), Error);

  Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
  CollectiveShape shape;
  shape.group = members;
  const Demand demand = make_demand(Collective::allreduce, 1e9, 4, 1, GpuId{0}, shape);
  const PreparedEngine engine = spanning_engine().prepare({topology, demand}, {}, tools);
  const Demand split = demand.with_chunks(64);
  const ReplayResult replayed = replay(*topology, split, engine(split, {}).schedule->sends);
  EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
  EXPECT_LE(replayed.finish_us, 1.1 * 1e6);
}

// MODEL's figures of buffer per second: mesh 3x3 75, mesh 4x4 80, star of three at 1 GB/s 0.75.
TEST(SpanningPacking, ReachesTheStrengthOfMeshesAndStars) {
  EXPECT_NEAR(1e-3 / pack(*generated("mesh", {{"dims", "3x3"}})).us_per_byte, 75, 0.01);
  EXPECT_NEAR(1e-3 / pack(*generated("mesh", {{"dims", "4x4"}})).us_per_byte, 80, 0.01);
  EXPECT_NEAR(1e-3 / pack(*star(3)).us_per_byte, 0.75, 1e-4);
}

// Between chassis from one GPU, within each from the GPU that has come from there.
TEST(SpanningTrees, AreShallowWhereThatCostsNoMore) {
  const auto topology = generated("rails", {{"boxes", "4"}, {"gpus", "4"}});
  const std::vector<GpuId> members = all_gpus(*topology);
  const std::vector<double> price(topology->num_links(), 1);
  const std::vector<double> link_cost = LinkRows(*topology).link_costs(price);
  const auto trees = make_spanning_trees(*topology, members, LinkUse::shared);
  for (std::uint64_t salt = 0; salt < 20; ++salt) {
    double cost = 0;
    const WeightedTree tree = trees->cheapest(price, salt, cost);
    std::vector<int> depth(members.size(), -1);
    depth[static_cast<std::size_t>(tree.spread.front().from)] = 0;
    for (std::size_t joined = 1; joined < depth.size(); ++joined) {
      for (const MemberArc& arc : tree.spread) {
        int& there = depth[static_cast<std::size_t>(arc.to)];
        const int here = depth[static_cast<std::size_t>(arc.from)];
        if (there < 0 && here >= 0) there = here + 1;
      }
    }
    EXPECT_EQ(std::ranges::min(depth), 0);
    EXPECT_LE(std::ranges::max(depth), 2);
    double its_cost = 0;
    for (const MemberArc& arc : tree.gather) {
      for (const LinkId l : arc.links) its_cost += link_cost[l.index()];
    }
    EXPECT_NEAR(its_cost, cost, 1e-9 * cost);
  }
}

// The links into two of three GPUs are half as fast. The third one's sums and results come over its own
// links, 2 us a KB; where a transfer to the others keeps a whole link, the one out of it would take 4, and an
// even mix of all centres takes 8/3.
TEST(SpanningTrees, CountLinksForAsLongAsSlowerOnesKeepThem) {
  const auto topology =
      fabric({gpu(), gpu(), gpu(), network_switch()},
             {link(0, 3), link(1, 3), link(2, 3), link(3, 0, 0.5), link(3, 1, 0.5), link(3, 2)});
  EXPECT_NEAR(1e3 * pack(*topology).us_per_byte, 2, 1e-3);
  const SpanningPacking whole =
      pack_spanning_trees(*topology, all_gpus(*topology), make_clp_column_master, 400, {}, LinkUse::whole);
  EXPECT_NEAR(1e3 * whole.us_per_byte, 8.0 / 3, 1e-3);
  EXPECT_LE(whole.bound_us_per_byte, whole.us_per_byte * (1 + 1e-9));
}

// Behind the first switch a slow link, behind the second one none that is; a direct link keeps nothing else.
TEST(PathsBetween, GoByWhatTheSlowestLinkKeeps) {
  const auto topology =
      fabric({gpu(), gpu(), network_switch(), network_switch(), gpu()},
             {link(0, 2, 10), link(2, 1, 2), link(0, 3, 4), link(3, 1, 4), link(0, 4, 1), link(4, 0, 1)});
  const std::vector<GpuId> members = all_gpus(*topology);
  // Only links out of the first GPU cost anything to speak of.
  const std::vector<double> price{1, 1e-6, 1, 1e-6, 1, 1};
  PathsBetween shared(*topology, members, LinkUse::shared);
  EXPECT_NEAR(shared.costs(price)[0][1], 1e-4, 1e-8);
  EXPECT_EQ(shared.path(0, 1), (std::vector{LinkId{0}, LinkId{1}}));
  PathsBetween whole(*topology, members, LinkUse::whole);
  const auto cost = whole.costs(price);
  EXPECT_NEAR(cost[0][1], 2.5e-4, 1e-8);
  EXPECT_EQ(whole.path(0, 1), (std::vector{LinkId{2}, LinkId{3}}));
  EXPECT_NEAR(cost[0][2], 1e-3, 1e-8);
  EXPECT_EQ(whole.path(0, 2), std::vector{LinkId{4}});
  EXPECT_EQ(cost[1][0], kInfinity);
  EXPECT_TRUE(whole.are_cheapest());
  EXPECT_TRUE(speeds_differ(*topology));
  EXPECT_FALSE(speeds_differ(*star(3)));
  // A switch that stores sends on at another rate.
  const auto stores = fabric({gpu(), gpu(), network_switch(Forwarding::store_and_forward)},
                             {link(0, 2, 10), link(2, 1, 2), link(1, 2, 10), link(2, 0, 2)});
  EXPECT_FALSE(speeds_differ(*stores));
  const std::vector<GpuId> both = all_gpus(*stores);
  EXPECT_NEAR(PathsBetween(*stores, both, LinkUse::whole).costs({1, 1e-6, 1, 1e-6})[0][1], 1e-4, 1e-8);
}

TEST(SpanningEngine, MakesSchedulesThatTheReplayAcceptsAndNearlyReachesThePacking) {
  for (const auto& topology : {generated("mesh", {{"dims", "3x3"}}), star(4),
                               star(3, Forwarding::store_and_forward), one_way_ring(4)}) {
    Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
    const Demand demand = make_demand(Collective::allreduce, 1e9, topology->num_gpus(), 1);
    const PreparedEngine engine = spanning_engine().prepare({topology, demand}, {}, tools);
    const Demand split = demand.with_chunks(256);
    const EngineResult result = engine(split, {});
    const ReplayResult replayed = replay(*topology, split, result.schedule->sends);
    EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
    EXPECT_GE(replayed.finish_us, result.metrics.at("tree_throughput_us"));
    EXPECT_LE(replayed.finish_us, 1.2 * result.metrics.at("tree_throughput_us"));
  }
}

// Greedily, paths at full rate find one of their links busy while another one is idle.
TEST(SpanningEngine, SharesTheLinksOfSwitchesWherePathsWouldWaitForEachOther) {
  const auto topology = damaged(
      *generated("star", {{"chassis", "4"}, {"gpus", "4"}, {"intra", "switch"}, {"uplinks", "2"}}), 0.1, 1);
  Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
  const Demand demand = make_demand(Collective::allreduce, 1e9, topology->num_gpus(), 1);
  const EngineInfo spanning = spanning_engine();
  const PreparedEngine engine = spanning.prepare({topology, demand}, {}, tools);
  const Demand split = demand.with_chunks(512);
  std::map<std::string, double> finish_us;
  for (const std::string& policy : spanning.policies) {
    EngineOptions options;
    options.policy = policy;
    const EngineResult result = engine(split, options);
    const ReplayResult replayed = replay(*topology, split, result.schedule->sends);
    EXPECT_TRUE(replayed.valid()) << policy << replayed.violation.value_or("");
    finish_us[policy] = replayed.finish_us;
  }
  EXPECT_LT(finish_us.at("even-rates"), 0.97 * finish_us.at("in-order"));
  EngineOptions alone;
  alone.concurrency = 1;
  EXPECT_FALSE(spanning.offers({topology, demand}, alone)("even-rates"));
  EXPECT_TRUE(spanning.offers({topology, demand}, {})("even-rates"));
  EXPECT_FALSE(spanning.offers({one_way_ring(4), demand}, {})("even-rates"));
}

}  // namespace
}  // namespace rondo::test_spanning
