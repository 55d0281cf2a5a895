#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/decomp/decomposition.hpp"

namespace rondo::test_decomposition {
namespace {

Topology star() {
  return generate_topology("star", {{"chassis", "3"}, {"gpus", "4"}});
}
Topology torus() {
  return generate_topology("torus", {{"dims", "4x4"}});
}

Decomposition decompose_pop(const Topology& topology, const Demand& demand, int parts, std::uint64_t seed) {
  return find_decomposition("pop").decompose_round(topology, demand, parts, seed);
}
Decomposition decompose_ncflow(const Topology& topology, const Demand& demand, int parts,
                               std::uint64_t seed) {
  return find_decomposition("ncflow").decompose_round(topology, demand, parts, seed);
}

Demand allgather(const Topology& topology, int chunks = 1) {
  return make_demand(Collective::allgather, 1e6, topology.num_gpus(), chunks);
}

std::vector<int> chunks_of_shares(const Decomposition& pop, std::size_t shares) {
  std::vector<int> count(shares, 0);
  for (const int share : pop.share_of_chunk) ++count.at(static_cast<std::size_t>(share));
  return count;
}

/// Of all pairs of different GPUs, how many parts decide about each.
std::set<std::ptrdiff_t> deciders_a_pair(const Topology& topology, const Decomposition& decomposition) {
  std::vector<Part> parts;
  for (const auto& stage : decomposition.stages) parts.insert(parts.end(), stage.begin(), stage.end());
  std::set<std::ptrdiff_t> counts;
  for (std::size_t src = 0; src < topology.num_gpus(); ++src) {
    for (std::size_t dst = 0; dst < topology.num_gpus(); ++dst) {
      if (src == dst) continue;
      counts.insert(std::count_if(parts.begin(), parts.end(), [&](const Part& part) {
        return decides(decomposition, part, GpuId{src}, GpuId{dst});
      }));
    }
  }
  return counts;
}

void expect_usage(const Topology& topology, int parts) {
  try {
    decompose_ncflow(topology, allgather(topology), parts, 0);
    ADD_FAILURE() << parts << " parts were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
  }
}

TEST(Decomposition, NoneIsOnePartForEverything) {
  const Topology topology = star();
  const Decomposition whole = find_decomposition("none").decompose_round(topology, allgather(topology), 0, 0);
  ASSERT_EQ(whole.stages.size(), 1U);
  EXPECT_EQ(whole.stages[0].size(), 1U);
  EXPECT_EQ(deciders_a_pair(topology, whole), std::set<std::ptrdiff_t>{1});
}

TEST(Decomposition, PopDealsChunksEvenly) {
  const Topology topology = star();
  for (const int parts : {1, 2, 3, 5, 7, 40}) {
    for (const int chunks : {1, 3}) {
      const Decomposition pop = decompose_pop(topology, allgather(topology, chunks), parts, 1);
      ASSERT_EQ(pop.stages.size(), 1U);
      EXPECT_EQ(pop.stages[0].size(), static_cast<std::size_t>(parts));
      ASSERT_EQ(pop.share_of_chunk.size(), static_cast<std::size_t>(12 * chunks));
      const std::vector<int> count = chunks_of_shares(pop, static_cast<std::size_t>(parts));
      const auto [least, most] = std::minmax_element(count.begin(), count.end());
      EXPECT_LE(*most - *least, 1) << parts << " parts, " << chunks << " chunks";
    }
  }
}

TEST(Decomposition, PopSplitsEveryContribution) {
  const Topology topology = star();
  const Decomposition pop = decompose_pop(topology, allgather(topology, 4), 2, 9);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto first = pop.share_of_chunk.begin() + static_cast<std::ptrdiff_t>(4 * i);
    EXPECT_EQ(std::count(first, first + 4, 0), 2) << "contribution " << i;
  }
}

TEST(Decomposition, PopPartsNameTheirShare) {
  const Topology topology = star();
  const Decomposition pop = decompose_pop(topology, allgather(topology), 0, 0);
  ASSERT_EQ(pop.stages[0].size(), 4U);  // the default
  for (int i = 0; i < 4; ++i) {
    const Part& part = pop.stages[0][static_cast<std::size_t>(i)];
    EXPECT_EQ(part.share, i);
    EXPECT_EQ(part.shares, 4);
    EXPECT_EQ(part.where, Part::Where::everywhere);
  }
}

TEST(Decomposition, PopDependsOnTheSeedAlone) {
  const Topology topology = star();
  const Demand demand = allgather(topology);
  const auto deal = [&](std::uint64_t seed) {
    return decompose_pop(topology, demand, 3, seed).share_of_chunk;
  };
  EXPECT_EQ(deal(5), deal(5));
  EXPECT_NE(deal(5), deal(6));
}

TEST(Decomposition, NcFlowTakesChassisAsClusters) {
  const Topology topology = star();
  const Decomposition ncflow = decompose_ncflow(topology, allgather(topology), 0, 0);
  EXPECT_EQ(ncflow.cluster_of_gpu, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  ASSERT_EQ(ncflow.stages.size(), 2U);
  ASSERT_EQ(ncflow.stages[0].size(), 1U);
  EXPECT_EQ(ncflow.stages[0][0].where, Part::Where::between_clusters);
  ASSERT_EQ(ncflow.stages[1].size(), 3U);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(ncflow.stages[1][static_cast<std::size_t>(c)].cluster, c);
  EXPECT_EQ(decompose_ncflow(topology, allgather(topology), 3, 0).cluster_of_gpu, ncflow.cluster_of_gpu);
}

TEST(Decomposition, NcFlowPartitionsAFabricWithoutChassis) {
  const Topology topology = torus();
  for (const int parts : {0, 2, 3, 4}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      const Decomposition ncflow = decompose_ncflow(topology, allgather(topology), parts, seed);
      ASSERT_EQ(ncflow.cluster_of_gpu.size(), 16U);
      std::map<int, int> gpus;
      for (const int c : ncflow.cluster_of_gpu) ++gpus[c];
      const int expected = parts > 0 ? parts : 2;  // one for 8 GPUs
      EXPECT_EQ(gpus.size(), static_cast<std::size_t>(expected)) << parts << " parts, seed " << seed;
      EXPECT_EQ(ncflow.stages[1].size(), gpus.size());
      EXPECT_EQ(gpus.begin()->first, 0);
      EXPECT_EQ(gpus.rbegin()->first, static_cast<int>(gpus.size()) - 1);
    }
  }
}

// The partitioner leaves parts without GPUs where they are small, or where switches take them up.
TEST(Decomposition, NcFlowMakesAsManyClustersAsAsked) {
  const auto clusters = [](const Topology& topology, int parts) {
    return decompose_ncflow(topology, allgather(topology), parts, 0).stages[1].size();
  };
  EXPECT_EQ(clusters(torus(), 8), 8U);
  EXPECT_EQ(clusters(torus(), 16), 16U);
  EXPECT_EQ(clusters(generate_topology("ring", {{"gpus", "8"}}), 5), 5U);
  EXPECT_EQ(clusters(generate_topology("fat_tree", {}), 0), 2U);  // 16 GPUs
}

TEST(Decomposition, NcFlowPartitionsASingleChassis) {
  const Topology topology = generate_topology("star", {{"chassis", "2"}, {"gpus", "4"}});
  TopologyData data = topology.data();
  for (Node& node : data.nodes) {
    if (node.kind == NodeKind::gpu) node.chassis = 7;
  }
  const Topology single(std::move(data));
  const Decomposition ncflow = decompose_ncflow(single, allgather(single), 0, 0);
  // Between the two there are only the links of the switch: cheaper to cut than those inside.
  EXPECT_EQ(ncflow.cluster_of_gpu, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(Decomposition, NcFlowRefusesPartsThatDoNotFit) {
  expect_usage(star(), 2);   // three chassis
  expect_usage(star(), 13);  // twelve GPUs
  expect_usage(torus(), 17);
}

TEST(Decomposition, EveryPairIsDecidedByOnePart) {
  EXPECT_EQ(deciders_a_pair(star(), decompose_ncflow(star(), allgather(star()), 0, 0)),
            std::set<std::ptrdiff_t>{1});
  EXPECT_EQ(deciders_a_pair(torus(), decompose_ncflow(torus(), allgather(torus()), 4, 0)),
            std::set<std::ptrdiff_t>{1});
}

TEST(Decomposition, PartsDecideWhereTheySay) {
  const Decomposition ncflow = decompose_ncflow(star(), allgather(star()), 0, 0);
  const Part& between = ncflow.stages[0][0];
  const Part& second = ncflow.stages[1][1];
  EXPECT_TRUE(decides(ncflow, between, GpuId{0}, GpuId{4}));
  EXPECT_FALSE(decides(ncflow, between, GpuId{4}, GpuId{5}));
  EXPECT_TRUE(decides(ncflow, second, GpuId{4}, GpuId{5}));
  EXPECT_FALSE(decides(ncflow, second, GpuId{0}, GpuId{1}));
  EXPECT_FALSE(decides(ncflow, second, GpuId{4}, GpuId{0}));
}

}  // namespace
}  // namespace rondo::test_decomposition
