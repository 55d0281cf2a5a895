#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expect_error.hpp"
#include "fabrics.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "rooted/bounded_tree.hpp"
#include "rooted/interleaved_trees.hpp"
#include "rooted/out_tree_packing.hpp"
#include "rooted/shallower_trees.hpp"
#include "rooted/whole_trees.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo rooted_engine();
}  // namespace rondo

namespace rondo::test_rooted {
namespace {

Toolbox toolbox_of_columns() {
  return {all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master};
}

/// A ring of four GPUs both ways, 1000 us a megabyte on every link.
std::shared_ptr<const Topology> ring_of_four() {
  return fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 3), link(3, 0), link(1, 0),
                                               link(2, 1), link(3, 2), link(0, 3)});
}

/// Four GPUs around a switch.
std::shared_ptr<const Topology> star_of_four(bool multicast) {
  Node middle{.kind = NodeKind::switch_, .multicast = multicast};
  return fabric({gpu(), gpu(), gpu(), gpu(), middle}, {link(0, 4), link(1, 4), link(2, 4), link(3, 4),
                                                       link(4, 0), link(4, 1), link(4, 2), link(4, 3)});
}

/// Six GPUs around a switch that does not copy.
std::shared_ptr<const Topology> star_of_six() {
  std::vector<Link> links;
  for (int g = 0; g < 6; ++g) {
    links.push_back(link(g, 6));
    links.push_back(link(6, g));
  }
  return fabric(
      {gpu(), gpu(), gpu(), gpu(), gpu(), gpu(), Node{.kind = NodeKind::switch_, .multicast = false}}, links);
}

RootedData a_megabyte(const Topology& topology) {
  RootedData data{GpuId{0}, {}, kMB};
  for (std::size_t g = 1; g < topology.num_gpus(); ++g) data.destinations.emplace_back(g);
  return data;
}

double finish_by(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                 const std::string& policy) {
  const PreparedEngine prepared = rooted_engine().prepare({topology, demand}, {}, toolbox_of_columns());
  const EngineResult result = prepared(demand, {.policy = policy});
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_NEAR(replayed.finish_us, result.schedule->finish_us, 1e-6);
  return replayed.finish_us;
}

Demand broadcast_to_all(const Topology& topology, int chunks, double bytes = kMB) {
  return make_demand(Collective::broadcast, bytes, topology.num_gpus(), chunks);
}

// Two links leave the root: both ways around, half of the data each.
TEST(WholeTrees, GoBothWaysAroundARing) {
  const auto ring = ring_of_four();
  const CopyGraph graph = make_copy_graph(*ring);
  const RootedData data = a_megabyte(*ring);
  ASSERT_TRUE(may_have_whole_trees(*ring, graph, data));
  EXPECT_NEAR(least_busy_us(*ring, data), 500, 1e-9);
  const auto packing = pack_whole_trees(*ring, graph, data, 500);
  ASSERT_TRUE(packing);
  ASSERT_EQ(packing->trees.size(), 2U);
  std::vector<int> trees_of_link(ring->num_links(), 0);
  for (const OutTree& tree : packing->trees) {
    EXPECT_EQ(tree.weight, 0.5);
    EXPECT_EQ(tree.transfers.size(), 3U);
    for (const TreeTransfer& transfer : tree.transfers) ++trees_of_link[transfer.links.front().index()];
  }
  EXPECT_EQ(trees_of_link, (std::vector<int>{1, 1, 1, 0, 0, 1, 1, 1}));
}

// Three hops in a chain: two where the root has room for one more tree on its link to the second GPU, and two
// where another tree gives its link to the third one and reaches it from the second.
TEST(ShallowerTrees, TakeLinksThatHaveRoomAndExchangeOthers) {
  CopyGraph graph;
  graph.out.resize(4);
  const auto arc = [&](std::size_t from, std::size_t to) {
    const auto w = static_cast<int>(graph.arcs.size());
    graph.out[from].push_back(w);
    graph.arcs.push_back({NodeId(from), NodeId(to), {}});
    return w;
  };
  const int to_1 = arc(0, 1), to_2 = arc(0, 2), to_3 = arc(0, 3);
  const int from_1_to_2 = arc(1, 2), from_2_to_3 = arc(2, 3), from_2_to_1 = arc(2, 1);
  const std::vector<double> delays_us(graph.arcs.size(), 1);
  const std::vector<int> chain = {to_1, from_1_to_2, from_2_to_3};
  EXPECT_EQ(shallower_trees(graph, NodeId{0}, {1, 1, 0, 1, 1, 1}, delays_us, {chain}),
            (ArcsOfTrees{{to_1, to_2, from_2_to_3}}));
  EXPECT_EQ(
      shallower_trees(graph, NodeId{0}, {1, 1, 1, 1, 1, 1}, delays_us, {chain, {to_2, to_3, from_2_to_1}}),
      (ArcsOfTrees{{to_1, to_3, from_1_to_2}, {to_2, from_2_to_1, from_2_to_3}}));
}

TEST(BoundedTree, ChangesEntriesUntilNoneIsCheaper) {
  CopyGraph graph;
  graph.out.resize(5);
  std::vector<double> costs;
  const auto arc = [&](std::size_t from, std::size_t to, double cost) {
    const auto w = static_cast<int>(graph.arcs.size());
    graph.out[from].push_back(w);
    graph.arcs.push_back({NodeId(from), NodeId(to), {}});
    costs.push_back(cost);
    return w;
  };
  const int to_1 = arc(0, 1, 3), to_2 = arc(0, 2, 2);
  const int from_1_to_2 = arc(1, 2, 1), from_2_to_1 = arc(2, 1, 1), from_2_to_3 = arc(2, 3, 5);
  const int to_switch = arc(0, 4, 1), from_switch_to_3 = arc(4, 3, 1);
  const std::vector<char> wanted = {0, 1, 1, 1, 0};
  const std::vector<double> delays(graph.arcs.size(), 1);
  const auto cheaper = [&](double most_delay, const std::vector<int>& arcs) {
    std::vector<int> found = cheaper_within(graph, NodeId{0}, wanted, costs, delays, most_delay, arcs);
    std::ranges::sort(found);
    return found;
  };
  const std::vector<int> chain = {to_1, from_1_to_2, from_2_to_3};
  // The root sends to 2 instead of 1, and over the switch.
  EXPECT_EQ(cheaper(3, chain), (std::vector{to_2, from_2_to_1, to_switch, from_switch_to_3}));
  // With both straight from the root nothing is behind them.
  const std::vector<int> flat = {to_1, to_2, to_switch, from_switch_to_3};
  EXPECT_EQ(cheaper(2, flat), (std::vector{to_2, from_2_to_1, to_switch, from_switch_to_3}));
  costs[5] = 9;  // a switch that is too dear is left
  EXPECT_EQ(cheaper(2, flat), (std::vector{to_2, from_2_to_1, from_2_to_3}));
  EXPECT_EQ(cheaper(1, {to_1, to_2}), (std::vector{to_1, to_2}));
}

// 50 chunks of 10 us each way; the last one takes two hops more.
TEST(RootedEngine, EndsAsSoonAsThePipelineAllows) {
  const auto ring = ring_of_four();
  EXPECT_NEAR(finish_by(ring, broadcast_to_all(*ring, 100), "whole"), 500 + 3 * 1 + 2 * 10, 1e-6);
}

TEST(OutTreePacking, ColumnsComeToTheSameAsWholeTrees) {
  const Topology torus = generate_topology("torus:dims=4x4");
  const RootedData data = a_megabyte(torus);
  const CopyGraph graph = make_copy_graph(torus);
  const double least_us = least_busy_us(torus, data);
  EXPECT_NEAR(least_us, 5, 1e-9);  // four links of 50 GB/s
  for (const DepthPreference depth : {DepthPreference{0.03}, {0.3}, {0.3, PackingAim::depth}}) {
    const OutTreePacking packing =
        pack_out_trees(torus, graph, data, depth, least_us, make_clp_column_master, {});
    EXPECT_LE(packing.busy_us, least_us * 1.001);
    std::vector<double> load(torus.num_links(), 0);
    for (const OutTree& tree : packing.trees) {
      EXPECT_EQ(tree.transfers.size(), 15U);
      for (const TreeTransfer& transfer : tree.transfers) load[transfer.links.front().index()] += tree.weight;
    }
    for (const double share : load) EXPECT_LE(share, 0.25 * 1.001);
  }
}

std::size_t deepest(const OutTreePacking& packing) {
  std::size_t deepest = 0;
  for (const OutTree& tree : packing.trees) {
    std::vector<std::size_t> depth;
    for (const TreeTransfer& transfer : tree.transfers) {
      depth.push_back(transfer.from < 0 ? 1 : depth[static_cast<std::size_t>(transfer.from)] + 1);
      deepest = std::max(deepest, depth.back());
    }
  }
  return deepest;
}

// Cheap trees go by chains of GPUs over links that carry little.
TEST(OutTreePacking, IsShallowerWhereTheDeepestCounts) {
  const auto amd = shipped("amd-1");
  const RootedData data = a_megabyte(*amd);
  const CopyGraph graph = make_copy_graph(*amd);
  const double least_us = least_busy_us(*amd, data);
  const auto packed = [&](const DepthPreference& depth) {
    return pack_out_trees(*amd, graph, data, depth, least_us, make_clp_column_master, {});
  };
  const OutTreePacking deep = packed({0.03}), shallow = packed({0.03, PackingAim::depth});
  EXPECT_LE(shallow.busy_us, deep.busy_us * (1 + 1e-6));
  EXPECT_LT(deepest(shallow), deepest(deep));
}

// A switch that copies brings each chunk to all in one transfer of 1000 us, and one chunk is enough.
TEST(RootedEngine, SwitchesCopyWhereTheyMay) {
  const auto star = star_of_four(true);
  EXPECT_NEAR(finish_by(star, broadcast_to_all(*star, 1), "even"), 1000 + 2 * 1, 1e-6);
}

// Otherwise from GPU to GPU: 10 us a chunk over each link, and at most three hops for the last one.
TEST(RootedEngine, GoesFromGpuToGpuWhereSwitchesDoNotCopy) {
  const auto star = star_of_four(false);
  const double finish_us = finish_by(star, broadcast_to_all(*star, 100), "deep");
  EXPECT_GE(finish_us, 1000 + 2 * 1 + 10);
  EXPECT_LE(finish_us, 1.06 * 1000);
}

// Half as fast on a link behind the switch, a transfer to all takes twice as long, and others use the rest.
TEST(RootedEngine, SlowLinksDoNotHoldUpOthers) {
  TopologyData data = star_of_four(true)->data();
  data.links.push_back(link(1, 3));
  data.links[7].bandwidth_GBps /= 2;  // into GPU 3, which has another link from GPU 1
  const auto damaged = std::make_shared<const Topology>(data);
  EXPECT_LE(finish_by(damaged, broadcast_to_all(*damaged, 64), "even"), 1.1 * 1000);
}

// The root's trees over GPUs that want nothing, which carry half of the data (test_steiner.cpp).
TEST(RootedEngine, OtherGpusRelay) {
  const auto topology =
      fabric({gpu(), gpu(), gpu(), gpu()}, {link(0, 1), link(0, 3), link(1, 2), link(3, 2), link(2, 1)});
  const Demand demand =
      make_demand(Collective::broadcast, kMB, 4, 100, GpuId{0}, {.group = {GpuId{0}, GpuId{1}, GpuId{2}}});
  EXPECT_LE(finish_by(topology, demand, "even"), 500 + 3 * 11);
}

// Six GPUs around a switch that does not copy: each sends in one tree alone, there at most twice.
TEST(InterleavedTrees, LetEachGpuSendInOne) {
  const auto six = star_of_six();
  const Topology& star = *six;
  const CopyGraph graph = make_copy_graph(star);
  const RootedData data = a_megabyte(star);
  ASSERT_TRUE(may_interleave_trees(star, graph, data));
  const double least_us = least_busy_us(star, data);
  const auto packing = interleave_trees(star, graph, data, least_us);
  ASSERT_TRUE(packing);
  ASSERT_EQ(packing->trees.size(), 2U);
  EXPECT_EQ(packing->busy_us, least_us);
  std::vector<std::vector<int>> sends(2, std::vector<int>(star.num_links(), 0));
  for (std::size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(packing->trees[t].weight, 0.5);
    EXPECT_EQ(packing->trees[t].transfers.size(), 5U);
    for (const TreeTransfer& transfer : packing->trees[t].transfers)
      ++sends[t][transfer.links.front().index()];
  }
  for (const GpuId g : data.destinations) {
    const LinkId out = star.out_links(star.node_of(g)).front();
    EXPECT_TRUE(sends[0][out.index()] == 0 || sends[1][out.index()] == 0);
    EXPECT_LE(sends[0][out.index()] + sends[1][out.index()], 2);
  }
}

// Nine times eight GPUs: the trees are not as many as divide the senders, and are few hops deep.
TEST(InterleavedTrees, OthersSendWhereTheirNumberDoesNotDivide) {
  const Topology dragonfly = transposed(generate_topology("dragonfly:groups=9"));
  const CopyGraph graph = make_copy_graph(dragonfly);
  for (const double bytes : {1e6, 1e9}) {
    RootedData data = a_megabyte(dragonfly);
    data.bytes = bytes;
    const auto packing = interleave_trees(dragonfly, graph, data, least_busy_us(dragonfly, data));
    ASSERT_TRUE(packing);
    EXPECT_GT(packing->trees.size(), 1U);
    std::vector<std::size_t> on_link(dragonfly.num_links(), 0);
    for (const OutTree& tree : packing->trees) {
      EXPECT_EQ(tree.transfers.size(), data.destinations.size());
      for (const TreeTransfer& transfer : tree.transfers)
        for (const LinkId l : transfer.links) ++on_link[l.index()];
    }
    EXPECT_LE(*std::ranges::max_element(on_link), packing->trees.size());
  }
}

// One chunk more or less on the way: nothing waits for a link.
TEST(RootedEngine, InterleavedTreesFillTheLinks) {
  const auto star = star_of_four(false);
  const double finish_us = finish_by(star, broadcast_to_all(*star, 100), "whole");
  EXPECT_GE(finish_us, 1000 + 2 * 1 + 10);
  EXPECT_LE(finish_us, 1000 + 100);
}

// Two trees, 0 1 2 and 0 2 1, fill both links of the root in 500 us. Chunks take 4 us over a link: the one
// tree is 10 us deep, the other 110, for the link from 1 to 2 has 101 us. Together they end after the mean.
TEST(OutTreePacking, DeepTreesTakeLessWhereTheFinishCounts) {
  const auto triangle =
      fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(0, 2), link(1, 2, 1, 101), link(2, 1)});
  const RootedData data = a_megabyte(*triangle);
  const OutTreePacking packing =
      pack_out_trees(*triangle, make_copy_graph(*triangle), data, {.weight = 0.3, .aim = PackingAim::finish},
                     least_busy_us(*triangle, data), make_clp_column_master, {});
  ASSERT_TRUE(packing.finish_us);
  EXPECT_NEAR(*packing.finish_us, 560, 1e-3);
  EXPECT_NEAR(packing.busy_us, 550, 1e-3);
  ASSERT_EQ(packing.trees.size(), 2U);
  EXPECT_NEAR(packing.trees[0].weight, 0.55, 1e-6);
  EXPECT_NEAR(packing.trees[1].weight, 0.45, 1e-6);
  const double finish_us = finish_by(triangle, broadcast_to_all(*triangle, 200), "finish");
  EXPECT_GE(finish_us, 500 + 10);
  EXPECT_LE(finish_us, 575);
}

// Into the slow link goes half as much as into others, all the time.
TEST(RootedEngine, RatesOfTheirOwnFillDamagedLinks) {
  TopologyData data = star_of_four(true)->data();
  data.links.push_back(link(1, 3));
  data.links[7].bandwidth_GBps /= 2;
  const auto damaged = std::make_shared<const Topology>(data);
  EXPECT_LE(finish_by(damaged, broadcast_to_all(*damaged, 256), "even-rates"), 1.1 * 1000);
}

TEST(RootedEngine, SaysWhereRatesNeedMoreTransfersAtATime) {
  const auto star = star_of_six();
  const Demand demand = broadcast_to_all(*star, 16);
  const PreparedEngine prepared = rooted_engine().prepare({star, demand}, {}, toolbox_of_columns());
  expect_error(ExitCode::unavailable, {"more than 1 transfers are on link"},
               [&] { prepared(demand, {.policy = "whole", .concurrency = 1}); });
}

TEST(RootedEngine, RefusesDataOfSeveralRoots) {
  const auto ring = ring_of_four();
  const Instance instance{ring, make_demand(Collective::allgather, kMB, 4, 1)};
  EXPECT_FALSE(rooted_engine().applicable(instance, {}));
  expect_error(ExitCode::unavailable, {"data of one GPU"},
               [&] { prepare_rooted(instance, {}, toolbox_of_columns()); });
}

TEST(RootedEngine, SaysWhereNoWholeTreesFit) {
  const auto star = star_of_four(true);
  EXPECT_FALSE(may_have_whole_trees(*star, make_copy_graph(*star), a_megabyte(*star)));
  const PreparedEngine prepared =
      rooted_engine().prepare({star, broadcast_to_all(*star, 1)}, {}, toolbox_of_columns());
  expect_error(ExitCode::unavailable, {"no few whole trees"},
               [&] { prepared(broadcast_to_all(*star, 1), {.policy = "whole"}); });
}

}  // namespace
}  // namespace rondo::test_rooted
