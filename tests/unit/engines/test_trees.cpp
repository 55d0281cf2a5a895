#include <gtest/gtest.h>

#include <algorithm>

#include "fabrics.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "trees/tree_packing.hpp"

namespace rondo {
namespace {

using Parameters = std::map<std::string, std::string>;

std::shared_ptr<const Topology> generated(const std::string& family, const Parameters& parameters) {
  return std::make_shared<const Topology>(generate_topology(family, parameters));
}

/// Every root has `chunks` trees, each of which reaches every GPU once, a parent first; no arc is overdrawn.
void expect_packed(const TreePacking& packing, std::size_t gpus, int chunks) {
  std::vector<std::int64_t> left;
  for (const TreeArc& arc : packing.arcs) left.push_back(arc.capacity);
  std::vector<std::int64_t> of_root(gpus, 0);
  for (const PackedTree& tree : packing.trees) {
    of_root[tree.root.index()] += tree.multiplicity;
    std::vector<char> reached(gpus, 0);
    reached[tree.root.index()] = 1;
    for (const int a : tree.arcs) {
      const TreeArc& arc = packing.arcs[static_cast<std::size_t>(a)];
      EXPECT_TRUE(reached[arc.src.index()]);
      EXPECT_FALSE(reached[arc.dst.index()]);
      reached[arc.dst.index()] = 1;
      left[static_cast<std::size_t>(a)] -= tree.multiplicity;
    }
    EXPECT_EQ(tree.arcs.size() + 1, gpus);
  }
  for (const std::int64_t n : of_root) EXPECT_EQ(n, chunks);
  for (const std::int64_t n : left) EXPECT_GE(n, 0);
}

double finish_of(const std::shared_ptr<const Topology>& topology, double size_bytes, int chunks) {
  const Demand demand = make_demand(Collective::allgather, size_bytes, topology->num_gpus(), chunks);
  const EngineResult result = prepare_trees({topology, demand}, {}, {})(demand, {});
  const ReplayResult replayed = replay(*topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us));
  return replayed.finish_us;
}

TEST(Trees, RingBothWaysIsFilledExactly) {
  // Four GPUs with two chunks of 500 us: 4 x 2 trees of 3 arcs on 8 links, 3 on each.
  const auto ring = generated("ring", {{"gpus", "4"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  const TreePacking packing = pack_trees(*ring, 2, kMB / 2);
  EXPECT_NEAR(packing.time_us, 1500, 1e-3);
  expect_packed(packing, 4, 2);
  for (const TreeArc& arc : packing.arcs) EXPECT_EQ(arc.capacity, 3);
}

TEST(Trees, SwitchIsSplitOff) {
  const auto star = fabric({gpu(), gpu(), gpu(), network_switch()},
                           {link(0, 3), link(1, 3), link(2, 3), link(3, 0), link(3, 1), link(3, 2)});
  const TreePacking packing = pack_trees(*star, 1, kMB);
  EXPECT_NEAR(packing.time_us, 2000, 1e-3);  // two chunks down every link
  expect_packed(packing, 3, 1);
  for (const TreeArc& arc : packing.arcs) EXPECT_EQ(arc.path.size(), 2U);
  // Two ways after one another have twice the latency of 2 us.
  const double finish_us = finish_of(star, 3 * kMB, 1);
  EXPECT_GE(finish_us, 2002);
  EXPECT_LE(finish_us, 2004);
}

TEST(Trees, PacksEveryKindOfFabric) {
  const std::vector<std::shared_ptr<const Topology>> fabrics{
      generated("rails", {{"boxes", "2"}, {"gpus", "3"}}),
      generated("fat_tree", {{"leaves", "2"}, {"gpus", "3"}}), generated("torus", {{"dims", "3x3"}}),
      std::make_shared<const Topology>(degrade(generate_topology("mesh", {{"dims", "3x3"}}), 0.1, 0.5, 3)),
      generated("star", {{"chassis", "2"}, {"intra", "ndv2"}})};
  for (const auto& topology : fabrics) {
    for (const int chunks : {1, 3}) {
      expect_packed(pack_trees(*topology, chunks, 1e5), topology->num_gpus(), chunks);
      finish_of(topology, 1e5 * chunks * static_cast<double>(topology->num_gpus()), chunks);
    }
  }
}

TEST(Trees, RefusesWhatItDoesNotSupport) {
  const auto ring = one_way_ring(3);
  EXPECT_THROW(prepare_trees({ring, make_demand(Collective::alltoall, kMB, 3, 1)}, {}, {}), Error);
  EXPECT_THROW(pack_trees(generate_topology("torus", {{"dims", "9x9"}}), 1, kMB), Error);
}

}  // namespace
}  // namespace rondo
