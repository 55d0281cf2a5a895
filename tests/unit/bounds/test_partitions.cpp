#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/partitions.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/core/units.hpp"

namespace rondo::test_partitions {
namespace {

std::shared_ptr<const Topology> without_latency(const Topology& topology) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.latency_us = 0;
  return std::make_shared<const Topology>(std::move(data));
}

/// GB/s of the buffer that the best bound allows an AllReduce without latency.
double allreduce_bandwidth(const Topology& topology) {
  const auto fabric = without_latency(topology);
  const Demand demand = make_demand(Collective::allreduce, 1e9, fabric->num_gpus(), 1);
  const Bounds bounds = lower_bounds({fabric, demand}, tools());
  for (const LowerBound& bound : bounds.all)
    EXPECT_DOUBLE_EQ(bound.us, sound_bound_of(*fabric, demand, bound.certificate));
  return algorithm_bandwidth_GBps(1e9, bounds.best().us);
}

// The linear program of balanced trees gives the same.
TEST(Partitions, BoundsOfAllReduce) {
  const std::map<std::string, std::string> link{{"bandwidth_GBps", "50"}};
  const auto with = [&](std::map<std::string, std::string> values) {
    values.insert(link.begin(), link.end());
    return values;
  };
  EXPECT_NEAR(allreduce_bandwidth(*generated("mesh", with({{"dims", "4x4"}}))), 80, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*generated("mesh", with({{"dims", "3x3"}}))), 75, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*generated("ring", with({{"gpus", "8"}}))), 400.0 / 7, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*shipped("dgx1")), 600.0 / 7, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*shipped("ndv2-2")), 12.5, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*shipped("ndv2-4")), 25.0 / 3, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*shipped("dgx2-2")), 67.742, 1e-3);
  EXPECT_NEAR(allreduce_bandwidth(*generated("rails", {{"boxes", "2"}})), 2600.0 / 15, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(*generated("rails", {{"boxes", "4"}})), 400.0 / 3, 1e-9);
}

/// GPUs around one switch at 50 GB/s.
Topology star_of(int gpus, bool multicast, bool reduce) {
  TopologyData data = star(gpus)->data();
  for (Link& link : data.links) link = {link.src, link.dst, 50, 0};
  data.nodes.back().multicast = multicast;
  data.nodes.back().reduce = reduce;
  return Topology(std::move(data));
}

TEST(Partitions, SwitchesThatAddAndCopyLeaveTheCuts) {
  EXPECT_NEAR(allreduce_bandwidth(star_of(8, true, false)), 200.0 / 7, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(star_of(8, false, true)), 200.0 / 7, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(star_of(8, false, false)), 200.0 / 7, 1e-9);
  EXPECT_NEAR(allreduce_bandwidth(star_of(8, true, true)), 50, 1e-9);
}

/// The least over all partitions of all nodes into sets and outside that the certificate accepts, and over
/// all cuts.
double best_of_all(const Topology& topology, const Demand& demand) {
  double best = 0;
  std::vector<int> part(topology.num_nodes(), -1);
  const std::function<void(std::size_t, int)> extend = [&](std::size_t n, int sets) {
    if (n < part.size()) {
      for (part[n] = topology.is_gpu(NodeId{n}) ? 0 : -1; part[n] <= sets; ++part[n])
        extend(n + 1, std::max(sets, part[n] + 1));
      return;
    }
    for (const bool enter : {true, false}) {
      try {
        best = std::max(best, sound_bound_of(topology, demand, PartitionCertificate{part, enter}));
      } catch (const Error&) {  // no GPU in some set
      }
    }
  };
  extend(0, 0);
  for (std::size_t set = 1; set + 1 < std::size_t{1} << topology.num_nodes(); ++set) {
    CutCertificate cut;
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      if ((set >> n) & 1) cut.nodes.emplace_back(n);
    }
    cut.bytes = demand.size_bytes();
    try {
      best = std::max(best, sound_bound_of(topology, demand, cut));
    } catch (const Error&) {  // all GPUs on one side
    }
  }
  return best;
}

TEST(Partitions, NoOtherIsBetter) {
  const std::vector<std::pair<std::string, std::map<std::string, std::string>>> specs = {
      {"torus", {{"dims", "2x3"}}},
      {"mesh", {{"dims", "2x4"}}},
      {"star", {{"chassis", "2"}, {"gpus", "3"}, {"intra", "switch"}}},
      {"rails", {{"boxes", "2"}, {"gpus", "2"}}},
      {"fat_tree", {{"leaves", "2"}, {"gpus", "2"}, {"spines", "2"}, {"multicast", "false"}}}};
  for (const auto& [family, values] : specs) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Topology whole = generate_topology(family, values);
      const auto topology = without_latency(seed == 0 ? whole : degrade(whole, 0.4, 0.2, 0.9, seed));
      const Demand demand = make_demand(Collective::allreduce, 1e9, topology->num_gpus(), 1);
      const double found = lower_bounds({topology, demand}, tools()).best().us;
      EXPECT_NEAR(found / best_of_all(*topology, demand), 1, 1e-9) << topology->name() << ' ' << seed;
    }
  }
}

TEST(Partitions, AreOfTheGpusThatShareASum) {
  // GPUs 0 and 2 of a line: two ends and what is between.
  const auto line =
      fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1, 0), link(1, 0, 1, 0), link(1, 2, 1, 0), link(2, 1, 1, 0)});
  Contribution sum{GpuId{0}, kMB, {GpuId{0}, GpuId{2}}};
  sum.sources = sum.destinations;
  sum.reduce = true;
  const Demand demand(Collective::custom, kMB, 3, {sum}, 1);
  EXPECT_DOUBLE_EQ(lower_bounds({line, demand}, tools()).best().us, 1000);
  for (const PartitionCertificate& partition : find_partitions(*line, demand))
    EXPECT_DOUBLE_EQ(sound_bound_of(*line, demand, partition), 1000);
}

TEST(Partitions, LatencyAndCutsCountToo) {
  const auto ring = one_way_ring(4);
  const Bounds tiny = lower_bounds({ring, make_demand(Collective::allreduce, 4, 4, 1)}, tools());
  // A byte leaves a GPU after 0.004 us and is 3 us away from the farthest.
  EXPECT_NEAR(tiny.best().us, 3.004, 1e-12);
  EXPECT_EQ(certificate_kind(tiny.best().certificate), "cut");
}

TEST(Bounds, SumsForOneGpuHaveThoseOfTheTransposedProblem) {
  const auto fabric = shipped("ndv2-2");
  for (const auto& [sums, spread] : {std::pair{Collective::reduce_scatter, Collective::allgather},
                                     std::pair{Collective::reduce, Collective::broadcast}}) {
    const Demand demand = make_demand(sums, 1e9, 16, 1);
    const Bounds bounds = lower_bounds({fabric, demand}, tools());
    const Bounds same = lower_bounds(
        {std::make_shared<const Topology>(transposed(*fabric)), make_demand(spread, 1e9, 16, 1)}, tools());
    ASSERT_EQ(bounds.all.size(), same.all.size());
    for (std::size_t i = 0; i < bounds.all.size(); ++i) {
      EXPECT_EQ(bounds.all[i].us, same.all[i].us);
      EXPECT_EQ(bounds.all[i].us, sound_bound_of(*fabric, demand, bounds.all[i].certificate));
    }
  }
}

}  // namespace
}  // namespace rondo::test_partitions
