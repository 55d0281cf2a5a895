#include <gtest/gtest.h>

#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/steady_flow.hpp"

/// What symmetry makes equal is decided once: the same optima, and schedules that the replay accepts.
namespace rondo::test_symmetry {
namespace {

using Fabric = std::shared_ptr<const Topology>;

Demand alltoall(const Fabric& topology, double bytes) {
  return make_demand(Collective::alltoall, bytes, topology->num_gpus(), 1);
}
/// Two buses, each over the links out of half of four GPUs around a switch.
Fabric star_with_buses() {
  TopologyData data = star(4)->data();
  data.shared_bandwidth = {{"left", {LinkId{0}, LinkId{1}}, 1}, {"right", {LinkId{2}, LinkId{3}}, 1}};
  return std::make_shared<const Topology>(std::move(data));
}
std::vector<Fabric> symmetric_fabrics() {
  return {one_way_ring(4),
          star(5),
          star_with_buses(),
          shipped("ndv2-2"),
          shipped("dgx2-2"),
          generated("torus", {{"dims", "3x4"}}),
          generated("rails", {{"boxes", "3"}, {"rails", "2"}, {"gpus", "4"}}),
          generated("fat_tree", {{"leaves", "3"}, {"gpus", "3"}, {"spines", "2"}})};
}

TEST(Symmetry, ReducedAndWholeFlowsAgree) {
  for (const Fabric& topology : symmetric_fabrics()) {
    const Instance instance{topology, alltoall(topology, 1e9)};
    const SteadyFlow reduced = solve_steady_flow(instance, tools(), true, {});
    const SteadyFlow whole = solve_steady_flow(instance, tools(), false, {});
    EXPECT_LT(reduced.columns, whole.columns) << topology->name();
    EXPECT_EQ(reduced.all_columns, whole.columns);
    EXPECT_NEAR(reduced.field->finish_us / whole.field->finish_us, 1, 1e-9) << topology->name();
    // The prices of the reduced model prove its value on the whole topology.
    if (!topology->shared_bandwidth().empty()) continue;
    TopologyData no_latency = topology->data();
    for (Link& link : no_latency.links) link.latency_us = 0;
    const double proven = bound_of(Topology(std::move(no_latency)), instance.demand,
                                   MetricCertificate{reduced.field->link_price});
    EXPECT_NEAR(proven / whole.field->finish_us, 1, 1e-6) << topology->name();
  }
}

TEST(Symmetry, Dgx2CollapsesFiftyfold) {
  const auto dgx2 = shipped("dgx2-2");
  const SteadyFlow reduced = reduce({dgx2, alltoall(dgx2, 1e9)}, true);
  EXPECT_GE(reduced.all_columns, 50 * reduced.columns);
}

TEST(Symmetry, FlowsOfOtherOriginsAreImages) {
  // What enters every GPU of an origin's data less what leaves is what it wants; links carry what they can.
  const auto topology = shipped("dgx2-2");
  const Demand demand = alltoall(topology, 32e6);
  const SteadyFlow steady = solve_steady_flow({topology, demand}, tools(), true, {});
  std::vector<double> load(topology->num_links(), 0.0);
  for (std::size_t g = 0; g < topology->num_gpus(); ++g) {
    std::vector<double> balance(topology->num_nodes(), 0.0);
    for (const FlowField::Entry& entry : entries_of(*topology, steady.symmetry, *steady.field, GpuId{g})) {
      EXPECT_EQ(entry.commodity, static_cast<int>(g));
      balance[topology->link(entry.link).dst.index()] += entry.amount;
      balance[topology->link(entry.link).src.index()] -= entry.amount;
      load[entry.link.index()] += entry.amount;
    }
    for (std::size_t n = 0; n < topology->num_nodes(); ++n) {
      const double wanted = !topology->is_gpu(NodeId{n}) ? 0 : n == g ? -31e6 : 1e6;
      EXPECT_NEAR(balance[n], wanted, 1) << g << ' ' << n;
    }
  }
  for (std::size_t l = 0; l < load.size(); ++l) {
    EXPECT_LE(load[l], topology->links()[l].bandwidth_GBps * 1e3 * steady.field->finish_us * (1 + 1e-6));
  }
}

TEST(Symmetry, ReducedAndWholeTimeExpandedFlowsAgree) {
  for (const Fabric& topology :
       {one_way_ring(4), star(4), star(4, Forwarding::store_and_forward), star_with_buses(),
        generated("torus", {{"dims", "2x3"}, {"bandwidth_GBps", "1"}}),
        generated("fat_tree", {{"leaves", "2"}, {"gpus", "2"}, {"spines", "2"}, {"link_GBps", "1"}})}) {
    Instance instance{topology, alltoall(topology, 4 * kMB)};
    EpochOptions epochs;
    epochs.rule = EpochRule::fixed;
    epochs.tau_us = 500;
    instance.grid = make_epoch_grid(*topology, instance.demand, epochs);
    Instance reduced = instance;
    reduced.orbits = reduce(instance, true).orbits;
    for (const int k : {4, 5, 8}) {
      instance.grid->num_epochs = reduced.grid->num_epochs = k;
      const BuiltModel whole = time_expanded_flow(instance);
      const BuiltModel small = time_expanded_flow(reduced);
      EXPECT_LT(small.model.num_columns(), whole.model.num_columns());
      EXPECT_NEAR(make_clp_solver()->solve(small.model, {}).objective,
                  make_clp_solver()->solve(whole.model, {}).objective, 1e-7)
          << topology->name() << ' ' << k;
    }
  }
}

double replayed_finish(const Fabric& topology, const Demand& demand, const Schedule& schedule) {
  const ReplayResult replayed = replay(*topology, demand, schedule.sends);
  EXPECT_TRUE(replayed.valid()) << topology->name() << ": " << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, schedule.finish_us));
  return replayed.finish_us;
}

EngineOptions by_orbits(std::uint64_t seed = 0) {
  EngineOptions options;
  options.policy = "orbits";
  options.seed = seed;
  return options;
}

TEST(Orbits, OneWayRingByHand) {
  // Every GPU sends to the farthest first; all links are busy from 0 to 3000 us.
  const auto ring = one_way_ring(3);
  const Demand demand = alltoall(ring, 3 * kMB);
  const EngineResult result = prepare_flow({ring, demand}, {}, tools())(demand, by_orbits());
  EXPECT_EQ(result.metrics.at("automorphisms"), 3);
  const auto& sends = result.schedule->sends;
  ASSERT_EQ(sends.size(), 9U);
  for (int g = 0; g < 3; ++g) {
    const auto at = static_cast<std::size_t>(g);
    EXPECT_EQ(sends[at].link, LinkId{g});
    EXPECT_EQ(sends[at].start_us, 0);
    EXPECT_EQ(demand.destinations(sends[at].chunk).front(), GpuId{(g + 2) % 3});
  }
  EXPECT_DOUBLE_EQ(replayed_finish(ring, demand, *result.schedule), 3001);
}

TEST(Orbits, SchedulesAreValidAndMeetTheBound) {
  for (const Fabric& topology : symmetric_fabrics()) {
    const Demand demand = alltoall(topology, 1e9);
    const PreparedEngine engine = prepare_flow({topology, demand}, {}, tools());
    const double bound_us = lower_bounds({topology, demand}, tools()).best().us;
    for (const int chunks : {1, 4}) {
      const Demand split = demand.with_chunks(chunks);
      const EngineResult result = engine(split, by_orbits(3));
      ASSERT_TRUE(result.schedule) << topology->name();
      const double finish_us = replayed_finish(topology, split, *result.schedule);
      if (chunks == 4 && topology->shared_bandwidth().empty()) {
        EXPECT_LE(finish_us, bound_us * 1.05) << topology->name();
      }
    }
  }
}

TEST(Orbits, SeveralContributionsOfAPairAndReadyTimes) {
  // Around the ring: 2 MB and 1 MB to the next GPU, the latter ready at 500 us.
  const auto ring = one_way_ring(4);
  std::vector<Contribution> contributions;
  for (int g = 3; g >= 0; --g) {
    contributions.push_back({GpuId{g}, 2 * kMB, {GpuId{(g + 1) % 4}}});
    contributions.push_back({GpuId{g}, kMB, {GpuId{(g + 1) % 4}}, 500});
  }
  const Demand demand(Collective::custom, 12 * kMB, 4, contributions, 2);
  const EngineResult result = prepare_flow({ring, demand.with_chunks(1)}, {}, tools())(demand, by_orbits());
  EXPECT_EQ(result.metrics.at("automorphisms"), 4);
  EXPECT_DOUBLE_EQ(replayed_finish(ring, demand, *result.schedule), 3001);
}

TEST(Orbits, NoFreeGroup) {
  const auto line = fabric({gpu(), gpu(), gpu()}, {link(0, 1), link(1, 2), link(2, 1), link(1, 0)});
  const Demand demand = alltoall(line, 3 * kMB);
  const PreparedEngine engine = prepare_flow({line, demand}, {}, tools());
  EXPECT_FALSE(engine(demand, by_orbits()).schedule);
  EngineOptions asked = by_orbits();
  asked.policy_is_asked = true;
  EXPECT_THROW(engine(demand, asked), Error);
  EngineOptions off;
  off.symmetry = false;
  const auto ring = one_way_ring(3);
  EXPECT_FALSE(
      prepare_flow({ring, alltoall(ring, 3 * kMB)}, off, tools())(alltoall(ring, 3 * kMB), by_orbits())
          .schedule);
}

TEST(Orbits, WholeProblemsAreLeftOutWhereTheyAreLarge) {
  const auto torus = generated("torus", {{"dims", "4x4"}});
  const Demand demand = alltoall(torus, 1e9);
  const PreparedEngine engine = prepare_flow({torus, demand}, {}, tools());
  EngineOptions whole;
  whole.policy = "shortest";
  EXPECT_TRUE(engine(demand, whole).schedule);
  EXPECT_FALSE(engine(demand.with_chunks(100), whole).schedule);
}

TEST(Orbits, DegradedFabricsAreSolvedWhole) {
  const auto star = std::make_shared<const Topology>(
      degrade(generate_topology("star", {{"chassis", "2"}, {"gpus", "4"}}), 0.3, 0.5, 1));
  const Demand demand = alltoall(star, 1e8);
  const PreparedEngine engine = prepare_flow({star, demand}, {}, tools());
  EXPECT_FALSE(engine(demand, by_orbits()).schedule);
  EngineOptions whole;
  EXPECT_TRUE(engine(demand, whole).schedule);
}

}  // namespace
}  // namespace rondo::test_symmetry
