#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rondo/core/generators.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {
namespace {

Link link(int src, int dst, double bandwidth_GBps = 1, double latency_us = 1) {
  return {NodeId{src}, NodeId{dst}, bandwidth_GBps, latency_us};
}
Node network_switch() {
  Node node;
  node.kind = NodeKind::switch_;
  return node;
}
Topology fabric(std::vector<Node> nodes, std::vector<Link> links, std::vector<SharedBandwidth> shared = {}) {
  return Topology({"test", "", std::move(nodes), std::move(links), std::move(shared)});
}
/// 0 -> 1 -> 2 -> 3 -> 0
Topology one_way_ring() {
  return fabric(std::vector<Node>(4), {link(0, 1), link(1, 2), link(2, 3), link(3, 0)});
}
Demand alltoall(const Topology& topology) {
  return make_demand(Collective::alltoall, 1e6, topology.num_gpus(), 1);
}
int count(const std::vector<int>& orbit) {
  return OrbitTable(orbit).count();
}
std::vector<NodeId> nodes(std::vector<int> values) {
  return {values.begin(), values.end()};
}

TEST(Symmetry, OneWayRingTurns) {
  const Topology ring = one_way_ring();
  const Symmetry symmetry = find_symmetry(ring, alltoall(ring));
  EXPECT_NEAR(symmetry.log10_order, std::log10(4), 1e-9);
  EXPECT_EQ(count(symmetry.node_orbit), 1);
  EXPECT_EQ(count(symmetry.link_orbit), 1);
}

TEST(Symmetry, OneSlowLinkLeavesNothing) {
  for (const Link& slow : {link(3, 0, 0.5), link(3, 0, 1, 2)}) {
    const Topology ring = fabric(std::vector<Node>(4), {link(0, 1), link(1, 2), link(2, 3), slow});
    const Symmetry symmetry = find_symmetry(ring, alltoall(ring));
    EXPECT_TRUE(symmetry.is_trivial());
    EXPECT_EQ(count(symmetry.node_orbit), 4);
    EXPECT_EQ(find_rotations(ring, demand_pattern(alltoall(ring))).size(), 1U);
  }
}

TEST(Symmetry, RootsAndDirectionsCount) {
  const Topology ring = fabric(std::vector<Node>(4), {link(0, 1), link(1, 0), link(1, 2), link(2, 1),
                                                      link(2, 3), link(3, 2), link(3, 0), link(0, 3)});
  // Mirrored at the root.
  const Symmetry scatter = find_symmetry(ring, make_demand(Collective::scatter, 1e6, 4, 1));
  EXPECT_EQ(scatter.node_orbit, (std::vector{0, 1, 2, 1}));
  EXPECT_NEAR(find_symmetry(ring, alltoall(ring)).log10_order, std::log10(8), 1e-9);
  // 0 -> 1 carries more.
  std::vector<Contribution> pairs = alltoall(ring).contributions();
  pairs.front().bytes *= 2;
  EXPECT_TRUE(find_symmetry(ring, Demand(Collective::custom, 1e6, 4, pairs, 1)).is_trivial());
}

TEST(Symmetry, MulticastDemand) {
  const Topology ring = one_way_ring();
  EXPECT_EQ(count(find_symmetry(ring, make_demand(Collective::allgather, 1e6, 4, 1)).node_orbit), 1);
  EXPECT_TRUE(find_symmetry(ring, make_demand(Collective::broadcast, 1e6, 4, 1)).is_trivial());
  // 0 to 1 and 2, 2 to 3 and 0: half a turn.
  const Demand halves(Collective::custom, 2e6, 4,
                      {{GpuId{0}, 1e6, {GpuId{1}, GpuId{2}}}, {GpuId{2}, 1e6, {GpuId{3}, GpuId{0}}}}, 1);
  EXPECT_NEAR(find_symmetry(ring, halves).log10_order, std::log10(2), 1e-9);
}

TEST(Symmetry, KindsOfSwitchesAndSharedBandwidthCount) {
  const auto star = [](std::vector<SharedBandwidth> shared) {
    return fabric({{}, {}, {}, network_switch()},
                  {link(0, 3), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)},
                  std::move(shared));
  };
  EXPECT_EQ(find_symmetry(star({}), alltoall(star({}))).node_orbit, (std::vector{0, 0, 0, 1}));
  const Topology shared = star({{"nic", {LinkId{0}, LinkId{1}}, 1}});
  EXPECT_EQ(find_symmetry(shared, alltoall(shared)).node_orbit, (std::vector{0, 0, 1, 2}));
  // Two GPUs a switch; one switch may not copy.
  Node unicast = network_switch();
  unicast.multicast = false;
  const std::vector<Link> links{link(0, 4), link(4, 0), link(1, 4), link(4, 1), link(2, 5),
                                link(5, 2), link(3, 5), link(5, 3), link(4, 5), link(5, 4)};
  const Topology equal = fabric({{}, {}, {}, {}, network_switch(), network_switch()}, links);
  const Topology unequal = fabric({{}, {}, {}, {}, network_switch(), unicast}, links);
  EXPECT_EQ(find_symmetry(equal, alltoall(equal)).node_orbit, (std::vector{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(find_symmetry(unequal, alltoall(unequal)).node_orbit, (std::vector{0, 0, 1, 1, 2, 3}));
}

TEST(Symmetry, ParallelAndUnevenLinks) {
  // Two links one way, one the other way: no reflection.
  const Topology pair = fabric({{}, {}}, {link(0, 1), link(0, 1), link(1, 0)});
  EXPECT_TRUE(find_symmetry(pair, alltoall(pair)).is_trivial());
  const Topology even = fabric({{}, {}}, {link(0, 1), link(0, 1), link(1, 0), link(1, 0)});
  const Symmetry symmetry = find_symmetry(even, alltoall(even));
  EXPECT_EQ(symmetry.link_orbit, (std::vector{0, 1, 0, 1}));
}

TEST(Symmetry, ChecksRefuseWhatIsNone) {
  const Topology ring = one_way_ring();
  const DemandPattern pattern = demand_pattern(alltoall(ring));
  const auto with = [](std::vector<int> node, std::vector<int> link) {
    return Permutation{nodes(node), {link.begin(), link.end()}};
  };
  EXPECT_TRUE(is_automorphism(ring, pattern, with({1, 2, 3, 0}, {1, 2, 3, 0})));
  EXPECT_FALSE(is_automorphism(ring, pattern, with({1, 2, 3, 0}, {1, 2, 0, 3})));  // links elsewhere
  EXPECT_FALSE(is_automorphism(ring, pattern, with({0, 3, 2, 1}, {3, 2, 1, 0})));  // against the direction
  EXPECT_FALSE(is_automorphism(ring, pattern, with({0, 0, 2, 1}, {3, 2, 1, 0})));  // no bijection
  EXPECT_FALSE(is_automorphism(ring, pattern, with({1, 2, 3}, {1, 2, 3, 0})));
  const DemandPattern scatter = demand_pattern(make_demand(Collective::scatter, 1e6, 4, 1));
  EXPECT_FALSE(is_automorphism(ring, scatter, with({1, 2, 3, 0}, {1, 2, 3, 0})));
}

TEST(Transversal, TakesAGpuToAllOfItsOrbit) {
  const Topology torus = generate_topology("torus", {{"dims", "3x3"}});
  const Demand demand = alltoall(torus);
  const Symmetry symmetry = find_symmetry(torus, demand);
  const Transversal transversal(symmetry, NodeId{2});
  for (int n = 0; n < 9; ++n) {
    const Permutation p = transversal.element(NodeId{n});
    EXPECT_EQ(p.node[2], NodeId{n});
    EXPECT_TRUE(is_automorphism(torus, demand_pattern(demand), p));
    EXPECT_EQ(composed(p, inverse(p)).link[5], LinkId{5});
  }
}

TEST(FlowOrbits, StarOfThree) {
  // One origin; its own uplink, the others' downlinks; what comes back to it and the others' uplinks apart.
  const Topology star = fabric({{}, {}, {}, network_switch()},
                               {link(0, 3), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)});
  const Demand demand = alltoall(star);
  const auto orbits_of = [&](std::size_t most_columns) {
    return flow_orbits(star, demand, demand_pattern(demand), find_symmetry(star, demand), most_columns);
  };
  EXPECT_FALSE(orbits_of(3).has_value());
  const FlowOrbits orbits = orbits_of(4).value();
  ASSERT_EQ(orbits.origins.size(), 1U);
  EXPECT_EQ(orbits.origins[0].size, 3U);
  EXPECT_EQ(orbits.origins[0].link_orbit, (std::vector{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(orbits.origins[0].node_orbit, (std::vector{0, 1, 1, 2}));
  EXPECT_EQ(orbits.link_orbit, (std::vector{0, 0, 0, 1, 1, 1}));
}

/// Every member is a symmetry, none but the first leaves a GPU or a link in its place, and products are
/// members.
void expect_rotations(const Topology& topology, std::size_t members) {
  const DemandPattern pattern = demand_pattern(alltoall(topology));
  const std::vector<Permutation> rotations = find_rotations(topology, pattern);
  ASSERT_EQ(rotations.size(), members) << topology.name();
  std::set<std::vector<NodeId>> known;
  for (const Permutation& p : rotations) known.insert(p.node);
  EXPECT_EQ(known.size(), members);
  for (std::size_t r = 0; r < members; ++r) {
    EXPECT_TRUE(is_automorphism(topology, pattern, rotations[r]));
    EXPECT_TRUE(known.contains(composed(rotations[r], rotations[1]).node));
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      if (topology.is_gpu(NodeId{n})) {
        EXPECT_EQ(rotations[r].node[n] == NodeId{n}, r == 0);
      }
    }
    for (std::size_t l = 0; l < topology.num_links(); ++l)
      EXPECT_EQ(rotations[r].link[l] == LinkId{l}, r == 0);
  }
}

TEST(Rotations, MoveEveryGpuAndLink) {
  expect_rotations(one_way_ring(), 4);
  expect_rotations(generate_topology("torus", {{"dims", "3x4"}}), 12);
  expect_rotations(generate_topology("full", {{"gpus", "5"}}), 5);
  expect_rotations(generate_topology("star", {{"chassis", "3"}, {"intra", "ndv2"}}), 3);
  expect_rotations(generate_topology("rails", {{"boxes", "3"}, {"rails", "2"}, {"gpus", "4"}}), 3);
  expect_rotations(generate_topology("fat_tree", {{"leaves", "3"}, {"gpus", "2"}, {"spines", "2"}}), 3);
  expect_rotations(generate_topology("hypercube", {{"dimensions", "3"}}), 8);
}

TEST(Rotations, SharedBandwidthIsNotMetTwice) {
  // Both links share: turning them into each other would use the bus twice.
  const Topology pair = fabric({{}, {}}, {link(0, 1), link(1, 0)}, {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  EXPECT_FALSE(find_symmetry(pair, alltoall(pair)).is_trivial());
  EXPECT_EQ(find_rotations(pair, demand_pattern(alltoall(pair))).size(), 1U);
}

}  // namespace
}  // namespace rondo
