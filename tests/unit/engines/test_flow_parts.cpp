#include <gtest/gtest.h>

#include <set>

#include "fabrics.hpp"
#include "flow/compatible_set.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/route_table.hpp"

namespace rondo::test_flow_parts {
namespace {

TEST(PathDecomposition, SplitsOverBothSidesOfADiamond) {
  const Digraph diamond{4, {{0, 1}, {1, 3}, {0, 2}, {2, 3}}};
  const auto paths = decompose_flow(diamond, {3, 3, 1, 1}, 0, {{3, 4}});
  ASSERT_EQ(paths.size(), 1U);
  ASSERT_EQ(paths[0].size(), 2U);
  EXPECT_EQ(paths[0][0].arcs, (std::vector{0, 1}));
  EXPECT_DOUBLE_EQ(paths[0][0].amount, 3);
  EXPECT_EQ(paths[0][1].arcs, (std::vector{2, 3}));
  EXPECT_DOUBLE_EQ(paths[0][1].amount, 1);
}

TEST(PathDecomposition, SinksOnTheWayShareALink) {
  const Digraph line{3, {{0, 1}, {1, 2}}};
  const auto paths = decompose_flow(line, {5, 2}, 0, {{1, 3}, {2, 2}});
  ASSERT_EQ(paths[0].size(), 1U);
  ASSERT_EQ(paths[1].size(), 1U);
  EXPECT_DOUBLE_EQ(paths[0][0].amount, 3);
  EXPECT_DOUBLE_EQ(paths[1][0].amount, 2);
  EXPECT_EQ(paths[1][0].arcs, (std::vector{0, 1}));
}

TEST(PathDecomposition, CyclesAreCancelled) {
  // 1 -> 2 -> 1 carries more than the path 0 -> 1 -> 3 itself.
  const Digraph graph{4, {{0, 1}, {1, 3}, {1, 2}, {2, 1}}};
  const auto paths = decompose_flow(graph, {1, 1, 9, 9}, 0, {{3, 1}});
  ASSERT_EQ(paths[0].size(), 1U);
  EXPECT_EQ(paths[0][0].arcs, (std::vector{0, 1}));
  EXPECT_DOUBLE_EQ(paths[0][0].amount, 1);
}

TEST(PathDecomposition, NoPathWhereNoFlowArrives) {
  EXPECT_TRUE(decompose_flow({2, {{0, 1}}}, {0}, 0, {{1, 1}})[0].empty());
}

TEST(RouteBuilder, CutsPathsAtGpusAndKeepsStartTimes) {
  // 0 -> switch 3 -> 1 -> 2
  const auto topology =
      fabric({gpu(), gpu(), gpu(), network_switch()}, {link(0, 3, 2), link(3, 1, 1), link(1, 2, 4)});
  const Demand demand(Collective::custom, 1, 3, {{GpuId{0}, 1, {GpuId{2}}}}, 1);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{0}, LinkId{1}, LinkId{2}}, 1, {10, 10, 30});
  const RouteTable table = builder.build();
  const Route& route = table.of_contribution[0].at(0);
  ASSERT_EQ(route.hops.size(), 2U);
  EXPECT_EQ(route.start_us, (std::vector{10.0, 30.0}));
  const Hop& first = table.hops[static_cast<std::size_t>(route.hops[0])];
  EXPECT_EQ(first.links.size(), 2U);
  EXPECT_DOUBLE_EQ(first.duration_us(kMB), 1002);  // at the lesser rate, 2 us
}

TEST(RouteBuilder, AddsHopsThatTheTableLacks) {
  // 0 -> 1 straight on, or over two switches: not the way with the fewest links.
  const auto topology = fabric({gpu(), gpu(), network_switch(), network_switch()},
                               {link(0, 1), link(0, 2), link(2, 3), link(3, 1)});
  const Demand demand(Collective::custom, 1, 2, {{GpuId{0}, 1, {GpuId{1}}}}, 1);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{1}, LinkId{2}, LinkId{3}}, 1);
  const RouteTable table = builder.build();
  ASSERT_EQ(table.hops.size(), 2U);
  EXPECT_EQ(table.of_contribution[0][0].hops, std::vector{1});
  EXPECT_DOUBLE_EQ(table.hops[1].fixed_us, 3);
}

/// Chunks per link.
std::vector<int> link_chunks(const RouteTable& table, const RoutedChunks& routed, std::size_t links) {
  std::vector<int> count(links, 0);
  for (const int r : routed.route_of_chunk) {
    for (const int h : routed.routes[static_cast<std::size_t>(r)].hops) {
      for (const HopLink& part : table.hops[static_cast<std::size_t>(h)].links) ++count[part.link.index()];
    }
  }
  return count;
}

TEST(Rounding, EvensLoadsOverUnequalWays) {
  // 0 -> 1 at 1 GB/s, or over 2 at 2 GB/s: of 6 chunks 2 and 4, from either start.
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1), link(0, 2, 2), link(2, 1, 2)});
  const Demand demand(Collective::custom, 6 * kMB, 3, {{GpuId{0}, 6 * kMB, {GpuId{1}}}}, 6);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{0}}, 3 * kMB);  // proportions that are not the best
  builder.add(0, {LinkId{1}, LinkId{2}}, 3 * kMB);
  const RouteTable table = builder.build();
  for (const RoutingStart start : {RoutingStart::model, RoutingStart::shortest}) {
    const RoutedChunks routed = round_to_chunks(*topology, demand, table, start, 0);
    EXPECT_EQ(link_chunks(table, routed, 3), (std::vector{2, 4, 4}));
  }
}

TEST(Rounding, EvensLoadsToTheLastChunk) {
  // 0 -> 1, or over 2, all at 1 GB/s: the greatest load is least with half of the chunks on each way,
  // although those over 2 load two links.
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1), link(0, 2, 1), link(2, 1, 1)});
  const Demand demand(Collective::custom, 1000 * kMB, 3, {{GpuId{0}, 1000 * kMB, {GpuId{1}}}}, 1000);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{0}}, 600 * kMB);
  builder.add(0, {LinkId{1}, LinkId{2}}, 400 * kMB);
  const RouteTable table = builder.build();
  const RoutedChunks routed = round_to_chunks(*topology, demand, table, RoutingStart::model, 0);
  EXPECT_EQ(link_chunks(table, routed, 3), (std::vector{500, 500, 500}));
}

TEST(Rounding, TinyDataStaysOnTheShortWay) {
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1), link(0, 2, 2), link(2, 1, 2)});
  const Demand demand(Collective::custom, 6, 3, {{GpuId{0}, 6, {GpuId{1}}}}, 6);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{0}}, 2);
  builder.add(0, {LinkId{1}, LinkId{2}}, 4);
  const RouteTable table = builder.build();
  const RoutedChunks routed = round_to_chunks(*topology, demand, table, RoutingStart::model, 0);
  EXPECT_EQ(link_chunks(table, routed, 3), (std::vector{6, 0, 0}));
}

TEST(Rounding, RoutesWithTimesStayAmongThemselves) {
  const auto topology = fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1), link(0, 2, 2), link(2, 1, 2)});
  const Demand demand(Collective::custom, 6 * kMB, 3, {{GpuId{0}, 6 * kMB, {GpuId{1}}}}, 6);
  RouteBuilder builder(*topology, demand);
  builder.add(0, {LinkId{0}}, 6 * kMB, {0});
  const RouteTable table = builder.build();
  const RoutedChunks routed = round_to_chunks(*topology, demand, table, RoutingStart::model, 0);
  EXPECT_EQ(link_chunks(table, routed, 3), (std::vector{6, 0, 0}));
}

Claim claim(const std::vector<int>& resources, double weight, double share = 1) {
  Claim claim{{}, weight};
  for (const int r : resources) claim.parts.push_back({r, share});
  return claim;
}

TEST(CompatibleSet, PartsOfAResourceGoTogether) {
  // Thirds beside a half: two of them; once the half is left out, three, and four where they are quarters.
  Random random(0);
  std::vector<Claim> claims{claim({0}, 1.1, 0.5), claim({0, 1}, 1, 1.0 / 3), claim({0}, 1, 1.0 / 3),
                            claim({0}, 1, 1.0 / 3)};
  EXPECT_EQ(compatible_set(claims, random), (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(compatible_set(claims, random, std::vector{0.6}), (std::vector<std::size_t>{0}));
  EXPECT_EQ(compatible_set(std::span(claims).first(3), random, std::vector{1, 0.3}),
            (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(compatible_set(claims, random, std::vector{0.2}).empty());
}

TEST(CompatibleSet, LeavesTheGreedyChoiceForAHeavierSet) {
  // The first claim stands in the way of the two others.
  const std::vector<Claim> claims{claim({1, 2}, 1.5), claim({0, 1}, 1), claim({2, 3}, 1)};
  Random random(0);
  EXPECT_EQ(compatible_set(claims, random), (std::vector<std::size_t>{1, 2}));
}

TEST(CompatibleSet, KeepsAHeavyClaim) {
  const std::vector<Claim> claims{claim({1, 2}, 2.5), claim({0, 1}, 1), claim({2, 3}, 1)};
  Random random(0);
  EXPECT_EQ(compatible_set(claims, random), (std::vector<std::size_t>{0}));
}

TEST(CompatibleSet, FindsPerfectMatchings) {
  // 3 x 3 ports; the claims of a greedy start that leaves two ports idle come first.
  std::vector<Claim> claims;
  for (int i = 0; i < 2; ++i) claims.push_back(claim({i, 3 + i + 1}, 1));
  for (int i = 0; i < 3; ++i) claims.push_back(claim({i, 3 + i}, 1));
  Random random(0);
  const auto chosen = compatible_set(claims, random);
  EXPECT_EQ(chosen.size(), 3U);
  std::set<int> used;
  for (const std::size_t i : chosen) {
    for (const ClaimedPart& part : claims[i].parts) used.insert(part.resource);
  }
  EXPECT_EQ(used.size(), 6U);
}

TEST(CompatibleSet, NothingFromNothing) {
  Random random(0);
  EXPECT_TRUE(compatible_set({}, random).empty());
}

}  // namespace
}  // namespace rondo::test_flow_parts
