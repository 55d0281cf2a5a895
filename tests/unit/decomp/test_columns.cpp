#include <gtest/gtest.h>

#include "rondo/core/error.hpp"
#include "rondo/decomp/columns.hpp"

namespace rondo::test_columns {
namespace {

/// 0 -> 1 -> 2 and 0 -> 2; the last two links share a bandwidth.
Topology triangle() {
  const auto link = [](int src, int dst, double bandwidth_GBps) {
    return Link{NodeId{src}, NodeId{dst}, bandwidth_GBps, 0};
  };
  return Topology(TopologyData{"triangle",
                               "",
                               std::vector<Node>(3),
                               {link(0, 1, 2), link(1, 2, 2), link(0, 2, 1)},
                               {{"card", {LinkId{1}, LinkId{2}}, 2}}});
}

Demand to_both() {
  return Demand(Collective::custom, 5e3, 3, {{GpuId{0}, 2e3, {GpuId{1}}}, {GpuId{0}, 3e3, {GpuId{2}}}}, 1);
}

TEST(Columns, BlocksAndRowsOfTheSteadyState) {
  const ConcurrentFlow flow = steady_concurrent_flow(triangle(), to_both());
  ASSERT_EQ(flow.blocks.size(), 1u);
  EXPECT_EQ(flow.blocks[0].source, 0);
  ASSERT_EQ(flow.blocks[0].sinks.size(), 2u);
  EXPECT_EQ(flow.blocks[0].sinks[1].amount, 3e3);
  ASSERT_EQ(flow.rows.size(), 4u);
  EXPECT_EQ(flow.rows[0].capacity, 2e3);  // bytes a microsecond
  EXPECT_EQ(flow.rows[3].arcs, (std::vector<int>{1, 2}));
}

TEST(Columns, ATreeCarriesEverythingTheCheapestWay) {
  const ConcurrentFlow flow = steady_concurrent_flow(triangle(), to_both());
  BlockPricing pricing(flow);
  pricing.set_lengths({1, 1, 5});
  const FlowColumn over_1 = pricing.price(0);
  EXPECT_EQ(over_1.loads, (std::vector<ArcLoad>{{0, 5e3}, {1, 3e3}}));
  EXPECT_EQ(over_1.cost, 2e3 * 1 + 3e3 * 2);
  pricing.set_lengths({1, 1, 1});
  EXPECT_EQ(pricing.price(0).loads, (std::vector<ArcLoad>{{0, 2e3}, {2, 3e3}}));
}

TEST(Columns, RowsCountAllTheirArcs) {
  const ConcurrentFlow flow = steady_concurrent_flow(triangle(), to_both());
  const std::vector<RowLoad> rows = RowLoads(flow).of(std::vector<ArcLoad>{{1, 1e3}, {2, 3e3}});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].row, 1);
  EXPECT_EQ(rows[0].theta, 0.5);
  EXPECT_EQ(rows[2].row, 3);
  EXPECT_EQ(rows[2].theta, 2);
}

TEST(Columns, PricesAreNormalisedAndReachTheArcs) {
  const ConcurrentFlow flow = steady_concurrent_flow(triangle(), to_both());
  const std::vector<double> price = normalised_prices(flow, {1, 0, 0, 1});
  EXPECT_EQ(price, (std::vector<double>{1 / 4e3, 0, 0, 1 / 4e3}));
  EXPECT_EQ(arc_lengths(flow, price), (std::vector<double>{1 / 4e3, 1 / 4e3, 1 / 4e3}));
  EXPECT_EQ(normalised_prices(flow, {0, 0, 0, 0})[2], 1 / (4 * 1e3));
}

TEST(Columns, RefuseMulticast) {
  EXPECT_THROW(steady_concurrent_flow(triangle(), make_demand(Collective::allgather, 3e3, 3, 1)), Error);
}

TEST(TimedConcurrentFlow, TwoLinksInARowByHand) {
  // 1 MB an epoch, without latency: what leaves in epoch k can go on in k + 1.
  TopologyData data{
      "line", "", std::vector<Node>(3), {{NodeId{0}, NodeId{1}, 1, 0}, {NodeId{1}, NodeId{2}, 1, 0}}, {}};
  const Topology line(std::move(data));
  const Demand demand(Collective::custom, 2e6, 3, {{GpuId{0}, 2e6, {GpuId{2}}}}, 1);
  EXPECT_FALSE(timed_concurrent_flow(line, demand, 1000, 1));
  const auto timed = timed_concurrent_flow(line, demand, 1000, 3);
  ASSERT_TRUE(timed);
  ASSERT_EQ(timed->sends.size(), 6U);
  EXPECT_EQ(timed->flow.rows.size(), 6U);
  EXPECT_DOUBLE_EQ(timed->flow.rows.front().capacity, 1e6);
  EXPECT_EQ(timed->flow.graph.arcs.size(), 6U + 9U);  // and waiting
  ASSERT_EQ(timed->flow.blocks.size(), 1U);
  EXPECT_EQ(timed->flow.blocks.front().source, 0);
  EXPECT_EQ(timed->flow.blocks.front().sinks.front().node, 2 * 4 + 3);
}

}  // namespace
}  // namespace rondo::test_columns
