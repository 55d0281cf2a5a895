#include <gtest/gtest.h>

#include <algorithm>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/units.hpp"

namespace rondo::test_bounds {
namespace {

Bounds bounds_of(const std::shared_ptr<const Topology>& topology, const Demand& demand,
                 bool use_symmetry = true) {
  const Bounds bounds = lower_bounds({topology, demand}, tools(), use_symmetry);
  for (const LowerBound& bound : bounds.all) {
    EXPECT_DOUBLE_EQ(bound.us, sound_bound_of(*topology, demand, bound.certificate));
    EXPECT_LE(bound.us, bounds.best().us);
  }
  return bounds;
}

double best_of_kind(const Bounds& bounds, const std::string& kind) {
  double best = 0;
  for (const LowerBound& bound : bounds.all) {
    if (certificate_kind(bound.certificate) == kind) best = std::max(best, bound.us);
  }
  return best;
}

/// GB/s of algorithm bandwidth that the best bound allows an AllGather without latency.
double allgather_bandwidth(const Topology& topology) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.latency_us = 0;
  const auto fabric = std::make_shared<const Topology>(std::move(data));
  const Demand demand = make_demand(Collective::allgather, 1e9, fabric->num_gpus(), 1);
  return algorithm_bandwidth_GBps(1e9, bounds_of(fabric, demand).best().us);
}

TEST(Bounds, FarthestPairBindsTinyData) {
  const auto line =
      fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1, 1), link(1, 2, 1, 2), link(2, 1, 1, 2), link(1, 0, 1, 1)});
  const Bounds bounds = bounds_of(line, make_demand(Collective::allgather, 3, 3, 1));
  EXPECT_DOUBLE_EQ(best_of_kind(bounds, "latency"), 3);
  EXPECT_LT(bounds.best().us, 3.1);
}

/// A byte pays both messages on its way, by a time cut: latencies are 0.
TEST(Bounds, MessageCostsOnTheWayBindTinyData) {
  std::vector<Link> links{link(0, 1, 1, 0), link(1, 2, 1, 0), link(2, 1, 1, 0), link(1, 0, 1, 0)};
  for (Link& one : links) one.message_us = one.src == NodeId{0} || one.dst == NodeId{0} ? 1 : 2;
  const auto line = fabric({gpu(), gpu(), gpu()}, links);
  const Bounds bounds = bounds_of(line, make_demand(Collective::allgather, 3, 3, 1));
  EXPECT_GE(best_of_kind(bounds, "time_cut"), 3);
  EXPECT_LT(bounds.best().us, 3.1);
}

TEST(Bounds, LatencyCountsPairsThatExchangeDataOnly) {
  const auto ring = one_way_ring(4);  // 3 -> 0 is 1 us away, 0 -> 3 would be 3 us
  const Demand demand(Collective::custom, 1, 4, {{GpuId{3}, 1, {GpuId{0}}}}, 1);
  EXPECT_DOUBLE_EQ(best_of_kind(bounds_of(ring, demand), "latency"), 1);
}

TEST(Bounds, MaxFlowFindsTheNarrowCutThatIsNoChassis) {
  std::vector<Link> links;
  for (const auto& [a, b, bandwidth] : {std::tuple{0, 1, 10}, {2, 3, 10}, {1, 2, 1}}) {
    links.push_back(link(a, b, bandwidth, 0));
    links.push_back(link(b, a, bandwidth, 0));
  }
  const auto dumbbell = fabric({gpu(), gpu(), gpu(), gpu()}, links);
  const Bounds bounds = bounds_of(dumbbell, make_demand(Collective::allgather, 4 * kMB, 4, 1));
  // 2 MB of the one side over 1 GB/s.
  EXPECT_DOUBLE_EQ(bounds.best().us, 2000);
  const auto& nodes = std::get<CutCertificate>(bounds.best().certificate).nodes;
  const bool left = nodes == std::vector{NodeId{0}, NodeId{1}};
  EXPECT_TRUE(left || (nodes == std::vector{NodeId{2}, NodeId{3}}));
}

TEST(Bounds, NarrowestCutOfAChassisIsBehindItsSwitch) {
  std::vector<Node> nodes{gpu(), gpu(), gpu(), gpu(), network_switch(), network_switch()};
  for (int g = 0; g < 4; ++g) nodes[static_cast<std::size_t>(g)].chassis = g / 2;
  std::vector<Link> links;
  auto join = [&](int a, int b, double bandwidth, double latency) {
    links.push_back(link(a, b, bandwidth, latency));
    links.push_back(link(b, a, bandwidth, latency));
  };
  join(0, 1, 1, 0);
  join(2, 3, 1, 0);
  for (int g = 0; g < 4; ++g) join(g, 4 + g / 2, 1, 0);
  join(4, 5, 1.5, 250);
  const Bounds bounds = bounds_of(fabric(nodes, links), make_demand(Collective::allgather, 4 * kMB, 4, 1));
  // Into a GPU go 3 MB at 2 GB/s; between the switches 2 MB at 1.5 GB/s and 250 us.
  EXPECT_NEAR(bounds.best().us, 2000 / 1.5 + 250, 1e-6);
}

TEST(Bounds, BroadcastLeavesTheRootOnce) {
  const auto ring = one_way_ring(3);
  const Bounds bounds = bounds_of(ring, make_demand(Collective::broadcast, kMB, 3, 1));
  EXPECT_DOUBLE_EQ(bounds.best().us, 1002);
}

TEST(Bounds, MetricBeatsCutsWhereDataTravelsFar) {
  const auto ring = one_way_ring(3, 0);
  const Bounds bounds = bounds_of(ring, make_demand(Collective::alltoall, 3 * kMB, 3, 1));
  // Every GPU's 1 MB + 1 MB go 1 + 2 links: 9 MB x links over 3 links of 1 GB/s; 2 MB leave a GPU, 3 MB enter
  // none.
  EXPECT_NEAR(bounds.best().us, 3000, 1e-6);
  EXPECT_EQ(certificate_kind(bounds.best().certificate), "metric");
  EXPECT_DOUBLE_EQ(best_of_kind(bounds, "cut"), 2000);
}

TEST(Bounds, SharedBandwidthWeakensNoBound) {
  const auto plain = star(3);
  TopologyData data = plain->data();
  data.shared_bandwidth.push_back({"nic", {LinkId{0}, LinkId{1}}, 1});
  const auto shared = std::make_shared<const Topology>(std::move(data));
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  EXPECT_DOUBLE_EQ(best_of_kind(bounds_of(shared, demand), "metric"),
                   best_of_kind(bounds_of(plain, demand), "metric"));
}

// Both ways share 1 GB/s: either cut allows 1000 us, together they take twice as long. Latency is nothing
// beside it.
TEST(Bounds, LinksOfDifferentCutsShareBandwidth) {
  TopologyData data = fabric({gpu(), gpu()}, {link(0, 1), link(1, 0)})->data();
  data.shared_bandwidth.push_back({"bus", {LinkId{0}, LinkId{1}}, 1});
  const auto bus = std::make_shared<const Topology>(std::move(data));
  Toolbox with_columns = tools();
  with_columns.column_master = make_clp_column_master;
  const Bounds bounds = lower_bounds({bus, make_demand(Collective::alltoall, 2 * kMB, 2, 1)}, with_columns);
  EXPECT_EQ(certificate_kind(bounds.best().certificate), "prices");
  EXPECT_NEAR(bounds.best().us, 2001, 1);
}

TEST(Bounds, BeyondTheLpPricesOfABalancedRouting) {
  // Every pair has a link of its own: 1 MB at 1 GB/s, 1 us.
  const auto full = generated("full", {{"gpus", "30"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
  const Demand demand = make_demand(Collective::alltoall, 30 * kMB, 30, 1);
  const Bounds bounds = bounds_of(full, demand, false);
  ASSERT_GT(bounds.steady->columns, kMaxSteadyFlowColumns);
  EXPECT_EQ(bounds.remarks.size(), 1U);
  EXPECT_NEAR(best_of_kind(bounds, "metric"), 1001, 1e-6);
}

// The exact AllGather bounds that ForestColl gives (arXiv 2402.06787), as algorithm bandwidths.
TEST(Bounds, ForestCollValuesOfShippedFabrics) {
  EXPECT_NEAR(allgather_bandwidth(*shipped("dgx1")), 171.429, 1e-3);
  EXPECT_NEAR(allgather_bandwidth(*shipped("ndv2-2")), 25, 1e-6);
  EXPECT_NEAR(allgather_bandwidth(*shipped("ndv2-4")), 16.667, 1e-3);
  EXPECT_NEAR(allgather_bandwidth(*shipped("dgx2-2")), 129.032, 1e-3);
}

TEST(Bounds, ForestCollValuesOfLattices) {
  EXPECT_NEAR(allgather_bandwidth(*generated("torus", {{"dims", "4x4"}})), 213.333, 1e-3);
  EXPECT_NEAR(allgather_bandwidth(*generated("torus", {{"dims", "8x8"}})), 203.175, 1e-3);
  EXPECT_NEAR(allgather_bandwidth(*generated("mesh", {{"dims", "4x4"}})), 106.667, 1e-3);
  EXPECT_NEAR(allgather_bandwidth(*generated("hypercube", {{"dimensions", "6"}})), 304.762, 1e-3);
}

// 64 KB cross a link of 12.5 GB/s whose first message costs 1.3 us, and most of them go on over others.
TEST(Bounds, PricesGoOnWhereAnEndIsBarelyNotProven) {
  Toolbox with_columns = tools();
  with_columns.column_master = make_clp_column_master;
  const Bounds bounds = lower_bounds(
      {shipped("ndv2-2-messages"), make_demand(Collective::alltoall, 16e3, 16, 1)}, with_columns);
  EXPECT_GT(bounds.best().us, 1.3 + 5.12);
}

TEST(Bounds, AllToAllOnNdv2) {
  const auto ndv2 = shipped("ndv2-2");
  // 64 pairs of 62.5 MB cross each 12.5 GB/s link, 1.3 us.
  const Bounds bounds = bounds_of(ndv2, make_demand(Collective::alltoall, 1e9, 16, 1));
  EXPECT_NEAR(bounds.best().us, 320001.3, 1e-3);
  EXPECT_NEAR(best_of_kind(bounds, "metric"), 320001.3, 1e-3);
}

}  // namespace
}  // namespace rondo::test_bounds
