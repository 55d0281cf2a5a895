#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "rondo/core/generators.hpp"
#include "rondo/decomp/free_group.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo::test_orbits {
namespace {

Link link(int src, int dst, double bandwidth_GBps = 1, double latency_us = 1) {
  return {NodeId{src}, NodeId{dst}, bandwidth_GBps, latency_us};
}
Node network_switch() {
  Node node;
  node.kind = NodeKind::switch_;
  return node;
}
Topology made_of(std::vector<Node> nodes, std::vector<Link> links, std::vector<SharedBandwidth> shared = {}) {
  return Topology({"test", "", std::move(nodes), std::move(links), std::move(shared)});
}
/// 0 -> 1 -> 2 -> 3 -> 0
Topology one_way_ring() {
  return made_of(std::vector<Node>(4), {link(0, 1), link(1, 2), link(2, 3), link(3, 0)});
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

TEST(Symmetry, ShiftsOfAOneWayRing) {
  const Topology ring = one_way_ring();
  const Symmetry symmetry = find_symmetry(ring, alltoall(ring));
  EXPECT_NEAR(symmetry.log10_order, std::log10(4), 1e-9);
  EXPECT_EQ(count(symmetry.node_orbit), 1);
  EXPECT_EQ(count(symmetry.link_orbit), 1);
}

TEST(Symmetry, OneOtherLinkLeavesNothing) {
  Link dear = link(3, 0);
  dear.message_us = 1;
  Link stepped = link(3, 0);
  stepped.bandwidth_steps = {{0, 1}, {5, 2}};
  for (const Link& slow : {link(3, 0, 0.5), link(3, 0, 1, 2), dear, stepped}) {
    const Topology ring = made_of(std::vector<Node>(4), {link(0, 1), link(1, 2), link(2, 3), slow});
    const Symmetry symmetry = find_symmetry(ring, alltoall(ring));
    EXPECT_TRUE(symmetry.is_trivial());
    EXPECT_EQ(count(symmetry.node_orbit), 4);
    EXPECT_EQ(find_free_group(ring, demand_pattern(alltoall(ring))).order(), 1U);
  }
}

TEST(Symmetry, RootsAndDirectionsCount) {
  const Topology ring = made_of(std::vector<Node>(4), {link(0, 1), link(1, 0), link(1, 2), link(2, 1),
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
    return made_of({{}, {}, {}, network_switch()},
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
  const Topology equal = made_of({{}, {}, {}, {}, network_switch(), network_switch()}, links);
  const Topology unequal = made_of({{}, {}, {}, {}, network_switch(), unicast}, links);
  EXPECT_EQ(find_symmetry(equal, alltoall(equal)).node_orbit, (std::vector{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(find_symmetry(unequal, alltoall(unequal)).node_orbit, (std::vector{0, 0, 1, 1, 2, 3}));
}

TEST(Symmetry, ParallelAndUnevenLinks) {
  // Two links one way, one the other way: no reflection.
  const Topology pair = made_of({{}, {}}, {link(0, 1), link(0, 1), link(1, 0)});
  EXPECT_TRUE(find_symmetry(pair, alltoall(pair)).is_trivial());
  const Topology even = made_of({{}, {}}, {link(0, 1), link(0, 1), link(1, 0), link(1, 0)});
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

TEST(Symmetry, SumsOfAllForAllLookTheSameToEveryGpu) {
  const Topology ring = generate_topology("ring", {{"gpus", "4"}});
  const Demand allreduce = make_demand(Collective::allreduce, 4e6, 4, 1);
  EXPECT_EQ(count(find_symmetry(ring, allreduce).node_orbit), 1);
  std::vector<Contribution> sums = allreduce.contributions();
  sums[0].destinations.pop_back();
  const Demand for_three(Collective::custom, 4e6, 4, std::move(sums), 1);
  EXPECT_EQ(count(find_symmetry(ring, for_three).node_orbit), 4);
}

// Members and the others are no longer alike; each two of a kind still are.
TEST(Symmetry, AGroupKeepsToItself) {
  const Topology ring = generate_topology("ring", {{"gpus", "4"}});
  const CollectiveShape opposite{.group = {GpuId{0}, GpuId{2}}};
  for (const Collective collective : {Collective::allreduce, Collective::alltoall, Collective::allgather}) {
    const Symmetry symmetry = find_symmetry(ring, make_demand(collective, 4e6, 4, 1, GpuId{0}, opposite));
    EXPECT_EQ(count(symmetry.node_orbit), 2) << to_string(collective);
    EXPECT_EQ(symmetry.node_orbit[0], symmetry.node_orbit[2]) << to_string(collective);
    EXPECT_EQ(symmetry.node_orbit[1], symmetry.node_orbit[3]) << to_string(collective);
  }
  CollectiveShape counts{.counts = {1e6, 2e6, 1e6, 2e6}};
  EXPECT_EQ(
      count(find_symmetry(ring, make_demand(Collective::allgather, 6e6, 4, 1, GpuId{0}, counts)).node_orbit),
      2);
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
  const Topology star = made_of({{}, {}, {}, network_switch()},
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

/// Elements are automorphisms, products and inverses are right, and nothing but the identity maps a GPU or a
/// link to itself.
void expect_free_group(const Topology& topology, std::size_t order,
                       const std::optional<Demand>& demand = std::nullopt) {
  const FreeGroup group = find_free_group(topology, demand_pattern(demand ? *demand : alltoall(topology)));
  ASSERT_EQ(group.order(), order) << topology.name();
  EXPECT_EQ(group.num_gpu_orbits() * order, topology.num_gpus());
  EXPECT_EQ(group.num_link_orbits() * order, topology.num_links());
  const auto gpu_at = [&](NodeId n) { return topology.gpu_of(n); };
  for (int a = 0; a < static_cast<int>(order); ++a) {
    EXPECT_EQ(group.product(a, group.inverse(a)), 0);
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const Link& from = topology.links()[l];
      const LinkId there = group.image(LinkId{l}, a);
      const Link& to = topology.link(there);
      EXPECT_EQ(there == LinkId{l}, a == 0);
      EXPECT_EQ(from.bandwidth_GBps, to.bandwidth_GBps);
      if (topology.is_gpu(from.src)) {
        EXPECT_EQ(gpu_at(to.src), group.image(gpu_at(from.src), a));
      }
      if (topology.is_gpu(from.dst)) {
        EXPECT_EQ(gpu_at(to.dst), group.image(gpu_at(from.dst), a));
      }
      for (int b = 0; b < static_cast<int>(order); ++b)
        EXPECT_EQ(group.image(group.image(LinkId{l}, b), a), group.image(LinkId{l}, group.product(a, b)));
    }
  }
}

TEST(FreeGroup, ShiftsOfAOneWayRing) {
  const Topology ring = one_way_ring();
  const FreeGroup found = find_free_group(ring, demand_pattern(alltoall(ring)));
  ASSERT_EQ(found.order(), 4U);
  EXPECT_EQ(found.num_gpu_orbits(), 1U);
  // Link g leads from GPU g to the next: both move alike.
  for (int e = 0; e < 4; ++e) {
    EXPECT_EQ(found.image(LinkId{1}, e).value, (1 + e) % 4);
    EXPECT_EQ(found.place(GpuId{e}).element, e);
    EXPECT_EQ(found.product(3, e), (3 + e) % 4);
    EXPECT_EQ(found.inverse(e), (4 - e) % 4);
  }
}

TEST(FreeGroup, FoundInEveryRegularFamily) {
  const auto expect = [](std::size_t order, const std::string& family,
                         const std::map<std::string, std::string>& parameters) {
    expect_free_group(generate_topology(family, parameters), order);
  };
  expect(12, "torus", {{"dims", "3x4"}});
  expect(24, "torus", {{"dims", "4x3x2"}});
  expect(5, "full", {{"gpus", "5"}});
  expect(8, "hypercube", {{"dimensions", "3"}});
  expect(3, "star", {{"chassis", "3"}, {"intra", "ndv2"}});
  expect(24, "rails", {{"boxes", "3"}});
  expect(12, "rails", {{"boxes", "3"}, {"rails", "2"}, {"gpus", "4"}});
  expect(9, "dragonfly", {{"groups", "9"}});
  expect(4, "fat_tree", {{"leaves", "4"}, {"gpus", "3"}});
  // The spines change places with the GPUs of the leaves, all at once or in cycles.
  expect(16, "fat_tree", {});
  expect(16, "fat_tree", {{"gpus", "8"}});
  expect(12, "fat_tree", {{"leaves", "6"}, {"gpus", "8"}, {"spines", "2"}});
  expect(16, "fat_tree", {{"gpus", "4"}, {"spines", "8"}});
  expect(8, "mesh", {{"dims", "4x4x2"}});
  expect(2, "mesh", {{"dims", "4x3"}});
  expect(1, "mesh", {{"dims", "3x3"}});
}

/// The same links over nodes that are numbered otherwise: node n becomes `image[n]`.
Topology renumbered(const Topology& topology, const std::vector<int>& image) {
  TopologyData data = topology.data();
  for (std::size_t n = 0; n < image.size(); ++n)
    data.nodes[static_cast<std::size_t>(image[n])] = topology.nodes()[n];
  for (Link& l : data.links) {
    l.src = NodeId{image[l.src.index()]};
    l.dst = NodeId{image[l.dst.index()]};
  }
  return Topology(std::move(data));
}

TEST(FreeGroup, FoundWhateverTheNumbers) {
  // 0 -> 2 -> 1 -> 4 -> 3 -> 0 has no shift or reflection of digits.
  expect_free_group(
      made_of(std::vector<Node>(5), {link(0, 2), link(2, 1), link(1, 4), link(4, 3), link(3, 0)}), 5);
  // Chassis of a star, its GPUs dealt over the numbers.
  const Topology star = generate_topology("star", {{"chassis", "3"}, {"gpus", "2"}});
  expect_free_group(renumbered(star, {0, 3, 1, 5, 2, 4, 6}), 3);
}

TEST(FreeGroup, NotCommutative) {
  // The Cayley graph of the permutations of three things: a shift of order 3 and a swap, one way each. Its
  // automorphisms are the group itself.
  const int shift[] = {1, 2, 0, 5, 3, 4};
  const int swap[] = {3, 4, 5, 0, 1, 2};
  std::vector<Link> links;
  for (int g = 0; g < 6; ++g) {
    links.push_back(link(g, shift[g], 1));
    links.push_back(link(g, swap[g], 2));
  }
  const Topology cayley = made_of(std::vector<Node>(6), links);
  const std::vector<Permutation> generators = find_symmetry(cayley, alltoall(cayley)).generators;
  const auto group = FreeGroup::generated_by(cayley, generators);
  ASSERT_TRUE(group);
  ASSERT_EQ(group->order(), 6U);
  int commuting = 0;
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) {
      commuting += group->product(a, b) == group->product(b, a);
      for (int g = 0; g < 6; ++g)
        EXPECT_EQ(group->image(group->image(GpuId{g}, b), a), group->image(GpuId{g}, group->product(a, b)));
    }
  }
  EXPECT_EQ(commuting, 18);  // of the 36 pairs: 6 times the number of conjugacy classes
}

TEST(FreeGroup, AutomorphismsWithFixedGpusGenerateNone) {
  // The mirror image of a star of three GPUs fixes GPU 0.
  const Topology star = made_of({{}, {}, {}, network_switch()},
                                {link(0, 3), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)});
  const Permutation mirror{nodes({0, 2, 1, 3}),
                           {LinkId{0}, LinkId{2}, LinkId{1}, LinkId{3}, LinkId{5}, LinkId{4}}};
  ASSERT_TRUE(is_automorphism(star, demand_pattern(alltoall(star)), mirror));
  EXPECT_FALSE(FreeGroup::generated_by(star, std::vector{mirror}));
  expect_free_group(star, 3);
}

TEST(FreeGroup, NoneWhereATrunkIsFixed) {
  // Swapping 0, 1 and 2, 3 at once is an automorphism, but all that goes from left to right shares one link.
  const Topology trunk = made_of({{}, {}, {}, {}, network_switch(), network_switch()},
                                 {link(0, 4), link(1, 4), link(4, 5), link(5, 2), link(5, 3), link(2, 4),
                                  link(3, 4), link(5, 0), link(5, 1)});
  expect_free_group(trunk, 1);
}

TEST(FreeGroup, KeepsSharedBandwidthApart) {
  // Both links share: an automorphism that swaps them would use the bus twice.
  const std::vector<Link> links{link(0, 1), link(1, 0)};
  const Topology pair = made_of({{}, {}}, links, {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  EXPECT_FALSE(find_symmetry(pair, alltoall(pair)).is_trivial());
  expect_free_group(pair, 1);
  expect_free_group(made_of({{}, {}}, links, {{"bus0", {LinkId{0}}, 1}, {"bus1", {LinkId{1}}, 1}}), 2);
}

}  // namespace
}  // namespace rondo::test_orbits
