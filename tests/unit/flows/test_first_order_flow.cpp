#include <gtest/gtest.h>

#include "first_order_flow.hpp"
#include "path_stripping.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::test_first_order_flow {
namespace {

/// From node 0 to node 1 straight, or by node 2.
const Digraph kTriangle{3, {{0, 1}, {0, 2}, {2, 1}}};

TEST(PathStripping, WhatIsTooLittleGoesTheShortestWayAndCyclesGo) {
  Digraph graph = kTriangle;
  graph.arcs.push_back({1, 2});  // with 2 -> 1 a cycle
  PathStripping stripping(graph, {5, 1, 1, 1});
  const CommodityBlock block{0, {{1, 4.0}}};
  EXPECT_EQ(stripping.exact_flow(block, {1, 2, 2.5, 0.5}), (std::vector<ArcLoad>{{0, 1}, {1, 3}, {2, 3}}));
  EXPECT_EQ(stripping.exact_flow(block, {9, 9, 9, 0}), (std::vector<ArcLoad>{{0, 4}}));
}

TEST(FirstOrderFlow, LoadsBothWaysAlike) {
  ConcurrentFlow flow{kTriangle, {{{0}, 1}, {{1}, 3}, {{2}, 7}}, {{0, {{1, 4.0}}}}};
  const auto alone = make_local_communicator();
  FirstOrderFlow method(flow, *alone, {{{0, 4.0}}}, {1, 0, 0}, 2);
  for (int steps = 0; steps < 2000;) steps += method.run(2000 - steps);
  EXPECT_NEAR(method.expected_theta(), 1, 1e-9);
  EXPECT_NEAR(method.row_price()[0], 0.25, 1e-9);
  EXPECT_NEAR(method.row_price()[1], 0.25, 1e-9);
  EXPECT_NEAR(method.row_price()[2], 0, 1e-9);
  const auto flows = method.flows();
  ASSERT_EQ(flows.size(), 1U);
  ASSERT_EQ(flows[0].size(), 3U);
  EXPECT_NEAR(flows[0][0].amount, 1, 1e-9);
  EXPECT_NEAR(flows[0][1].amount, 3, 1e-9);
  EXPECT_EQ(flows[0][1].amount, flows[0][2].amount);
}

}  // namespace
}  // namespace rondo::test_first_order_flow
