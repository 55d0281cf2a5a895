#include <gtest/gtest.h>

#include <algorithm>

#include "fabrics.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "trees/tree_packing.hpp"
#include "trees/tree_scheduler.hpp"

namespace rondo::test_trees {
namespace {

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
  // Two paths after one another have twice the latency of 2 us.
  const double finish_us = finish_of(star, 3 * kMB, 1);
  EXPECT_GE(finish_us, 2002);
  EXPECT_LE(finish_us, 2004);
}

/// GPU i of three sends chunk 2 i to both others itself; its chunk 2 i + 1 goes through GPU i + 1 to GPU i
/// + 2.
TEST(Trees, ChunksWithTheLongestPathLeftGoFirst) {
  const auto full = generated("full", {{"gpus", "3"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
  TreePacking packing;
  for (std::size_t l = 0; l < full->num_links(); ++l) {
    const Link& link = full->links()[l];
    packing.arcs.push_back({full->gpu_of(link.src), full->gpu_of(link.dst), 3, {LinkId{l}}});
  }
  const auto arc = [&](int src, int dst) {
    const auto found = std::ranges::find_if(
        packing.arcs, [&](const TreeArc& a) { return a.src.value == src % 3 && a.dst.value == dst % 3; });
    return static_cast<int>(found - packing.arcs.begin());
  };
  for (int i = 0; i < 3; ++i) {
    packing.trees.push_back({GpuId{i}, 1, {arc(i, i + 1), arc(i, i + 2)}});
    packing.trees.push_back({GpuId{i}, 1, {arc(i, i + 1), arc(i + 1, i + 2)}});
  }
  const Demand demand = make_demand(Collective::allgather, 6 * kMB, 3, 2);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const Schedule schedule = schedule_trees(*full, packing, demand, seed);
    // Link i -> i + 1 carries chunk 2 i + 1 from 0 on, then chunk 2 i, then from 2000 us on chunk 2 i - 1.
    // The other order of the first two would end 1 us later.
    EXPECT_DOUBLE_EQ(schedule.finish_us, 3001) << seed;
    for (const Send& send : schedule.sends) {
      const bool is_relayed = full->gpu_of(full->link(send.link).src).value != send.chunk.value / 2;
      EXPECT_TRUE(!is_relayed || send.start_us == 2000) << seed << ": at " << send.start_us;
    }
  }
}

TEST(Trees, PacksEveryKindOfFabric) {
  const std::vector<std::shared_ptr<const Topology>> fabrics{
      generated("rails", {{"boxes", "2"}, {"gpus", "3"}}),
      generated("fat_tree", {{"leaves", "2"}, {"gpus", "3"}}), generated("torus", {{"dims", "3x3"}}),
      damaged(generate_topology("mesh", {{"dims", "3x3"}}), 0.1, 3),
      generated("star", {{"chassis", "2"}, {"intra", "ndv2"}})};
  for (const auto& topology : fabrics) {
    for (const int chunks : {1, 3}) {
      const TreePacking packing = pack_trees(*topology, chunks, 1e5);
      expect_packed(packing, topology->num_gpus(), chunks);
      const double bytes = 1e5 * chunks * static_cast<double>(topology->num_gpus());
      EXPECT_GE(finish_of(topology, bytes, chunks), packing.time_us);
    }
  }
}

/// The last chunks take at most two hops more than the links need for all of them.
TEST(Trees, TorusTakesInEightChunksOverFourLinks) {
  const auto torus = generated("torus", {{"dims", "3x3"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  for (const int chunks : {1, 3}) {
    EXPECT_NEAR(pack_trees(*torus, chunks, kMB).time_us, 2000 * chunks, 1e-3);
    EXPECT_LE(finish_of(torus, 9 * chunks * kMB, chunks), 2000 * chunks + 2000) << chunks;
  }
}

TEST(Trees, RefusesWhatItDoesNotSupport) {
  const auto ring = one_way_ring(3);
  EXPECT_THROW(prepare_trees({ring, make_demand(Collective::alltoall, kMB, 3, 1)}, {}, {}), Error);
  EXPECT_THROW(pack_trees(generate_topology("torus", {{"dims", "9x9"}}), 1, kMB), Error);
}

}  // namespace
}  // namespace rondo::test_trees
