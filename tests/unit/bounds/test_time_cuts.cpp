#include <gtest/gtest.h>

#include <algorithm>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/transposition.hpp"
#include "unrolled_network.hpp"

namespace rondo::test_time_cuts {
namespace {

std::optional<LowerBound> found(const Topology& topology, const Demand& demand, double least_us = 0) {
  return find_time_cut(topology, demand, trivial_symmetry(topology), {}, TimeCutEffort::all, least_us);
}

double found_us(const Topology& topology, const Demand& demand) {
  const auto bound = found(topology, demand);
  if (!bound) return 0;
  EXPECT_EQ(bound->us, sound_bound_of(topology, demand, bound->certificate));
  return bound->us;
}

TEST(TimeCuts, WaysJoinInOneByOne) {
  const Topology topology = two_paths();
  EXPECT_DOUBLE_EQ(found_us(topology, custom(topology, {part(0, 10 * kUs, {1})})), 33.0 / 4);
  EXPECT_DOUBLE_EQ(found_us(topology, custom(topology, {part(0, 0.5 * kUs, {1})})), 5.5);
  EXPECT_DOUBLE_EQ(found_us(topology, custom(topology, {part(0, 10 * kUs, {1}, 3)})), 33.0 / 4 + 3);
  const Topology costly = two_paths(2);
  EXPECT_DOUBLE_EQ(found_us(costly, custom(costly, {part(0, 10 * kUs, {1})})), 33.0 / 4 + 2);
  // Nothing where no time cut beats what is known.
  EXPECT_FALSE(found(topology, custom(topology, {part(0, 10 * kUs, {1})}), 8.25));
}

TEST(TimeCuts, TheSourcesThatAreFarMayNeedLonger) {
  // GPU 1 sends 1 KB at 1 GB/s from 10 us away, GPU 0 sends 8 KB at 4 GB/s from near by; each has a link of
  // its own. All of it together would be served after (9 + 10 + 4) / 5 us.
  Fabric fabric(3);
  fabric.link(0, 2, 4, 1);
  fabric.link(1, 2, 1, 10);
  const Topology topology = fabric.build();
  EXPECT_DOUBLE_EQ(found_us(topology, custom(topology, {part(0, 8 * kUs, {2}), part(1, kUs, {2})})), 11);
}

TEST(TimeCuts, GroupsShareTheirFigure) {
  Fabric fabric(3);
  fabric.share({fabric.link(0, 2, 4, 1), fabric.link(1, 2, 4, 3)}, 5);
  const Topology nic = fabric.build();
  const Demand both = custom(nic, {part(0, 14 * kUs, {2}), part(1, 14 * kUs, {2})});
  EXPECT_NEAR(found_us(nic, both), 7, 1e-6);
}

TEST(TimeCuts, StepsAreApproached) {
  Fabric fabric(2);
  fabric.changing_link(0, 1, {{0, 10}, {50, 0}, {80, 5}}, 1);
  const Topology link = fabric.build();
  for (const auto& [kilobytes, us] : {std::pair{400, 41.0}, {501, 81.2}, {600, 101.0}})
    EXPECT_NEAR(found_us(link, custom(link, {part(0, kilobytes * kUs, {1})})) / us, 1, 1e-6);
}

TEST(TimeCuts, OfSumsAndOfSources) {
  const Topology forwards = two_paths();
  const Topology backwards = transposed(forwards);
  const Demand scatter = custom(backwards, {part(1, 10 * kUs, {0})});
  const Demand sum = custom(backwards, {sum_of({0, 1}, 10 * kUs, {0})});
  EXPECT_DOUBLE_EQ(found_us(backwards, scatter), 33.0 / 4);
  EXPECT_DOUBLE_EQ(found_us(backwards, sum), 33.0 / 4);
  // GPU 0 scatters: 8 KB leave at 4 GB/s and are 1 us away, 1 KB leaves at 1 GB/s and is 10 us away.
  Fabric fabric(3);
  fabric.link(0, 1, 4, 1);
  fabric.link(0, 2, 1, 10);
  const Topology apart = fabric.build();
  EXPECT_DOUBLE_EQ(found_us(apart, custom(apart, {part(0, 8 * kUs, {1}), part(0, kUs, {2})})), 11);
}

TEST(TimeCuts, GiveTheBestBoundWhereLatencyAndBandwidthMix) {
  struct Row {
    std::shared_ptr<const Topology> topology;
    Collective collective;
    double bytes;
    double us;
  };
  const auto rails = [](const char* boxes) { return generated("rails", {{"boxes", boxes}, {"rails", "2"}}); };
  for (const Row& row : {Row{shipped("ndv2-2"), Collective::allgather, 64e3, 5.64},
                         {shipped("ndv2-2"), Collective::reduce_scatter, 64e3, 5.64},
                         {shipped("ndv2-2"), Collective::allgather, 16e3, 4.34},
                         {rails("2"), Collective::allgather, 1e6, 6.375},
                         {rails("4"), Collective::allgather, 1e6, 7.625},
                         {shipped("amd-2"), Collective::allgather, 1e6, 6.775},
                         {shipped("amd-1"), Collective::allgather, 1e6, 3.5 + 0.95 / 3},
                         {shipped("dgx1"), Collective::allgather, 200e3, 1.6 + 1.6 / 3},
                         {shipped("ndv2-2"), Collective::gather, 1e6, 42}}) {
    const Demand demand = make_demand(row.collective, row.bytes, row.topology->num_gpus(), 1);
    const Bounds bounds = lower_bounds({row.topology, demand}, tools());
    EXPECT_NEAR(bounds.best().us, row.us, 1e-9) << row.topology->name() << ' ' << row.bytes;
    EXPECT_EQ(certificate_kind(bounds.best().certificate), "time_cut");
    EXPECT_EQ(bounds.best().us, sound_bound_of(*row.topology, demand, bounds.best().certificate));
  }
}

TEST(TimeCuts, NoneWhereBandwidthAloneMatters) {
  const auto topology = shipped("ndv2-2");
  const Bounds bounds = lower_bounds({topology, make_demand(Collective::allgather, 1e9, 16, 1)}, tools());
  EXPECT_EQ(certificate_kind(bounds.best().certificate), "cut");
  EXPECT_DOUBLE_EQ(bounds.best().us, 40002.7);
}

/// Groups apart, of which all links are rarely in use together.
TEST(TimeCuts, ReachTheFlowOfLeastTime) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const Case asked = random_case(random);
    int least = 0;
    for (std::size_t g = 0; g < asked.topology.num_gpus(); ++g)
      least = std::max(least, least_steps(asked, GpuId(g)));
    const Topology topology = asked.backwards ? transposed(asked.topology) : asked.topology;
    const Demand demand = asked.backwards ? transposed(asked.demand) : asked.demand;
    const double steps = found_us(topology, demand) * kSteps;
    EXPECT_LE(steps, least * (1 + 1e-9)) << i;
    if (!topology.shared_bandwidth().empty()) continue;
    EXPECT_GE(steps, (least - 1) * (1 - 1e-9)) << i;
  }
}

// Three GPUs, each behind a card of its own, send 1 MB each to a fourth one, whose card takes 1 GB/s: 3000 us
// and a latency. Counted at the cards of the senders alone, links would carry three times as much.
TEST(TimeCuts, DoNotDependOnTheOrderOfGroups) {
  Fabric fabric(4);
  for (int g = 0; g < 3; ++g) fabric.link(g, 3, 1, 1);
  TopologyData data = fabric.build().data();
  for (int g = 0; g < 3; ++g) data.shared_bandwidth.push_back({"out", {LinkId(g)}, 1});
  data.shared_bandwidth.push_back({"in", {LinkId{0}, LinkId{1}, LinkId{2}}, 1});
  const Demand demand = make_demand(Collective::gather, 4e6, 4, 1, GpuId{3});
  EXPECT_NEAR(found_us(Topology(data), demand), 3001, 1e-6);
  std::ranges::reverse(data.shared_bandwidth);
  EXPECT_NEAR(found_us(Topology(data), demand), 3001, 1e-6);
}

}  // namespace
}  // namespace rondo::test_time_cuts
