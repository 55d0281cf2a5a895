#include <gtest/gtest.h>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/generators.hpp"
#include "unrolled_network.hpp"

namespace rondo::test_counted_cuts {
namespace {

std::optional<LowerBound> found(const Topology& topology, const Demand& demand, double least_us) {
  return find_counted_cut(topology, demand, trivial_symmetry(topology), {}, least_us);
}

/// Four GPUs around a switch, 1 GB/s and 1 us a link.
Topology star(bool adds) {
  Fabric fabric(4);
  fabric.cut_through(true, adds);
  for (int g = 0; g < 4; ++g) {
    fabric.link(g, 4, 1, 1);
    fabric.link(4, g, 1, 1);
  }
  return fabric.build();
}

TEST(CountedCuts, WaitForWhatOthersHaveAdded) {
  const Topology topology = star(false);
  const Demand demand = make_demand(Collective::allreduce, kUs, 4, 1);
  // One each from the switch from 1 us on, what a GPU has added from 3 us on: 2 + 3 (T - 4) = 3.
  const auto bound = found(topology, demand, 3);
  ASSERT_TRUE(bound);
  EXPECT_NEAR(bound->us, 13.0 / 3, 1e-6);
  EXPECT_EQ(bound->us, sound_bound_of(topology, demand, bound->certificate));
  EXPECT_FALSE(std::get<TimeCutCertificate>(bound->certificate).sources.empty());
  // A sum for one GPU each is as hard for each of them.
  const Demand reduce = custom(topology, {sum_of({0, 1, 2, 3}, kUs, {0})});
  EXPECT_NEAR(found(topology, reduce, 3).value().us, 13.0 / 3, 1e-6);
}

TEST(CountedCuts, AreNothingWhereNoneIsBetter) {
  const Demand demand = make_demand(Collective::allreduce, kUs, 4, 1);
  EXPECT_FALSE(found(star(false), demand, 13.0 / 3));
  EXPECT_FALSE(found(star(true), demand, 3));
  EXPECT_FALSE(found(star(false), make_demand(Collective::allgather, 4 * kUs, 4, 1), 2));
  Fabric changing(2);
  changing.changing_link(0, 1, {{0, 10}, {50, 5}}, 1);
  changing.link(1, 0, 10, 1);
  const Topology steps = changing.build();
  EXPECT_FALSE(found(steps, make_demand(Collective::allreduce, kUs, 2, 1), 0.5));
}

TEST(CountedCuts, AreTheBestBoundOfSmallSumsWhereSwitchesDoNotAdd) {
  struct Row {
    std::shared_ptr<const Topology> topology;
    double bytes;
    double us;
  };
  const auto rails = generated("rails", {{"boxes", "4"}, {"rails", "2"}});
  for (const Row& row :
       {Row{shipped("amd-2"), 1e3, 3.605714},
        {rails, 16e3, 4.957333},
        {rails, 256e3, 7.706667},
        {generated("fat_tree", {{"leaves", "6"}, {"gpus", "8"}, {"spines", "2"}}), 16e3, 4.095}}) {
    const Demand demand = make_demand(Collective::allreduce, row.bytes, row.topology->num_gpus(), 1);
    const Bounds bounds = lower_bounds({row.topology, demand}, tools());
    const LowerBound& best = bounds.best();
    EXPECT_NEAR(best.us, row.us, 1e-6) << row.topology->name() << ' ' << row.bytes;
    const auto* cut = std::get_if<TimeCutCertificate>(&best.certificate);
    ASSERT_TRUE(cut);
    EXPECT_FALSE(cut->sources.empty());
    EXPECT_EQ(best.us, sound_bound_of(*row.topology, demand, best.certificate));
    EXPECT_FALSE(found(*row.topology, demand, best.us * 1.01));
  }
}

/// Of everyone's data they prove what all that arrives takes: no schedule that sends it apart ends earlier.
TEST(CountedCuts, AreNeverAboveTheFlowOfAllContributions) {
  Random random(5);
  int bounds = 0;
  for (int i = 0; i < 60; ++i) {
    const Topology topology = random_topology(random, false);
    std::vector<int> all;
    for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.push_back(static_cast<int>(g));
    const double bytes = (1 + below(random, 6)) * kUs;
    std::vector<Contribution> apart;
    for (const int g : all) {
      std::vector<int> others = all;
      std::erase(others, g);
      apart.push_back(part(g, bytes, others));
    }
    const Case flow{topology, custom(topology, std::move(apart))};
    const auto bound = found(topology, custom(topology, {sum_of(all, bytes, all)}), 1);
    if (!bound) continue;
    ++bounds;
    const GpuId gpu = std::get<TimeCutCertificate>(bound->certificate).gpu;
    EXPECT_LE(bound->us * kSteps, least_steps(flow, gpu) * (1 + 1e-9)) << i;
  }
  EXPECT_GT(bounds, 20);
}

}  // namespace
}  // namespace rondo::test_counted_cuts
