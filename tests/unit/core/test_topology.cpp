#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "expect_error.hpp"
#include "rondo/core/topology.hpp"

namespace rondo::test_topology {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// GPU 0 (node 0) - switch (node 1) - GPU 1 (node 2), a link each way.
TopologyData pair_behind_a_switch() {
  TopologyData data;
  data.name = "pair";
  data.nodes = {{.name = "a"}, {.kind = NodeKind::switch_, .name = "s"}, {.name = "b"}};
  const auto node = [](int n) { return NodeId(n); };
  data.links = {{node(0), node(1), 50, 0.5},
                {node(1), node(2), 50, 0.5},
                {node(2), node(1), 25, 0},
                {node(1), node(0), 25, 0}};
  data.shared_bandwidth = {{"nic", {LinkId(0), LinkId(3)}, 60}};
  return data;
}

template <class Change>
void expect_refused(const std::vector<std::string>& parts, Change change) {
  TopologyData data = pair_behind_a_switch();
  change(data);
  expect_error(ExitCode::bad_data, parts, [&] { Topology topology(data); });
}

TEST(Topology, NumbersGpusInNodeOrderAndIndexesLinks) {
  const Topology topology(pair_behind_a_switch());
  EXPECT_EQ(topology.num_gpus(), 2U);
  EXPECT_EQ(topology.node_of(GpuId(1)), NodeId(2));
  EXPECT_EQ(topology.gpu_of(NodeId(2)), GpuId(1));
  EXPECT_FALSE(topology.gpu_of(NodeId(1)).valid());
  ASSERT_EQ(topology.out_links(NodeId(1)).size(), 2U);
  EXPECT_EQ(topology.out_links(NodeId(1))[0], LinkId(1));
  EXPECT_EQ(topology.in_links(NodeId(0))[0], LinkId(3));
  EXPECT_EQ(topology.graph().num_nodes, 3);
  EXPECT_EQ(topology.graph().arcs[2].src, 2);
}

TEST(Topology, RefusesBandwidthsThatAreNotPositiveAndFinite) {
  for (const double bad : {-5.0, 0.0, kInfinity, kNan}) {
    expect_refused({"link 3: bandwidth_GBps is", "positive and finite"},
                   [&](TopologyData& data) { data.links[3].bandwidth_GBps = bad; });
    expect_refused({"shared_bandwidth 'nic': bandwidth_GBps is"},
                   [&](TopologyData& data) { data.shared_bandwidth[0].bandwidth_GBps = bad; });
  }
  expect_refused({"link 3: bandwidth_GBps is -5; it has to be positive and finite"},
                 [](TopologyData& data) { data.links[3].bandwidth_GBps = -5; });
}

TEST(Topology, RefusesBadLatenciesAndBuffers) {
  for (const double bad : {-0.1, kInfinity, kNan}) {
    expect_refused({"link 1: latency_us is"}, [&](TopologyData& data) { data.links[1].latency_us = bad; });
    expect_refused({"node 1: buffer_bytes is"},
                   [&](TopologyData& data) { data.nodes[1].buffer_bytes = bad; });
  }
}

TEST(Topology, RefusesBadEnds) {
  expect_refused({"link 2: dst is node 7", "nodes are 0 to 2"},
                 [](TopologyData& data) { data.links[2].dst = NodeId(7); });
  expect_refused({"link 0: src is node -1"}, [](TopologyData& data) { data.links[0].src = NodeId(-1); });
  expect_refused({"link 0: src and dst are both node 1"},
                 [](TopologyData& data) { data.links[0].src = NodeId(1); });
}

TEST(Topology, RefusesFewerThanTwoGpus) {
  expect_refused({"a collective needs at least two GPUs; topology 'pair' has 1"},
                 [](TopologyData& data) { data.nodes[2].kind = NodeKind::switch_; });
}

TEST(Topology, RefusesGroupsWithBadLinks) {
  expect_refused({"'nic': link 4 does not exist", "0 to 3"}, [](TopologyData& data) {
    data.shared_bandwidth[0].links = {LinkId(0), LinkId(4)};
  });
  expect_refused({"'nic': link 2 is named twice"}, [](TopologyData& data) {
    data.shared_bandwidth[0].links = {LinkId(2), LinkId(0), LinkId(2)};
  });
  expect_refused({"'nic': it names no link"},
                 [](TopologyData& data) { data.shared_bandwidth[0].links.clear(); });
}

TEST(Topology, RefusesMoreNodesThanTheCap) {
  TopologyData data;
  data.name = "huge";
  data.nodes.resize(kMaxNodes + 1);
  expect_error(ExitCode::unavailable, {"'huge'", "1000001 nodes", "at most 1000000"},
               [&] { Topology topology(data); });
}

TEST(Topology, ForwardingIsSetOnSwitchesAlone) {
  TopologyData data = pair_behind_a_switch();
  const Topology changed = with_switch_forwarding(Topology(data), Forwarding::store_and_forward);
  EXPECT_EQ(changed.node(NodeId(1)).forwarding, Forwarding::store_and_forward);
  EXPECT_EQ(changed.node(NodeId(0)).forwarding, Forwarding::cut_through);
}

}  // namespace
}  // namespace rondo::test_topology
