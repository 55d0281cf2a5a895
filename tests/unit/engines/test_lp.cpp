#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "expect_error.hpp"
#include "fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/solvers/pdhg.hpp"

namespace rondo::test_lp {
namespace {

using Fabric = std::shared_ptr<const Topology>;

EngineOptions epochs_of(double tau_us, int num_epochs = 0) {
  EngineOptions options;
  options.epochs.rule = EpochRule::fixed;
  options.epochs.tau_us = tau_us;
  options.epochs.num_epochs = num_epochs;
  return options;
}

/// Prepares, schedules in `chunks`, replays.
EngineResult run(const Fabric& topology, const Demand& demand, const EngineOptions& options, int chunks = 1,
                 const Toolbox& toolbox = tools()) {
  const Demand split = demand.with_chunks(chunks);
  EngineResult result = prepare_lp({topology, demand}, options, toolbox)(split, options);
  const ReplayResult replayed = replay(*topology, split, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_TRUE(times_equal(replayed.finish_us, result.schedule->finish_us));
  return result;
}

TEST(Lp, LeastEpochsByHand) {
  // Without latency 3 links x 3 epochs carry 9 MB x links: data that goes two links does so in two epochs.
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const EngineResult result = run(one_way_ring(3, 0), demand, epochs_of(1000));
  EXPECT_EQ(result.metrics.at("epochs"), 3);
  EXPECT_DOUBLE_EQ(result.metrics.at("model_finish_us"), 3000);
  EXPECT_DOUBLE_EQ(result.metrics.at("tau_us"), 1000);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 3000);
}

TEST(Lp, LatencyCostsAWholeEpoch) {
  // What leaves in epoch k lands two epochs later, so that epoch K - 1 is of no use.
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const EngineResult result = run(one_way_ring(3), demand, epochs_of(1000));
  EXPECT_EQ(result.metrics.at("epochs"), 4);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 3001);
}

TEST(Lp, ConvergesToTheBoundFromAbove) {
  const auto ring = one_way_ring(3);
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const double bound = lower_bounds({ring, demand}, tools()).best().us;
  double last = kInfinity;
  for (const double tau_us : {1000.0, 200.0, 50.0}) {
    const double finish = run(ring, demand, epochs_of(tau_us)).metrics.at("model_finish_us");
    EXPECT_GE(finish, bound);
    EXPECT_LE(finish, bound + 2 * tau_us);
    EXPECT_LE(finish, last);
    last = finish;
  }
}

TEST(Lp, CutThroughSwitchHoldsNothing) {
  // Up, through and down in one epoch, the latencies of both links together in one more.
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const EngineResult result = run(star(3), demand, epochs_of(1000));
  EXPECT_EQ(result.metrics.at("epochs"), 3);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 2002);
}

TEST(Lp, StoreAndForwardSwitchCostsItsOwnEpochs) {
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const EngineResult result = run(star(3, Forwarding::store_and_forward), demand, epochs_of(1000));
  EXPECT_EQ(result.metrics.at("epochs"), 5);
}

TEST(Lp, SharedBandwidthCounts) {
  const auto shared = fabric({gpu(), gpu(), gpu()}, {link(1, 0, 1, 0), link(2, 0, 1, 0)},
                             {{"bus", {LinkId{0}, LinkId{1}}, 1}});
  const EngineResult result = run(shared, make_demand(Collective::gather, 3 * kMB, 3, 1), epochs_of(1000));
  EXPECT_EQ(result.metrics.at("epochs"), 2);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 2000);
}

TEST(Lp, DataThatIsReadyLateStartsLate) {
  const Demand demand(Collective::custom, kMB, 2, {{GpuId{0}, kMB, {GpuId{1}}, 1500}}, 1);
  const auto pair = fabric({gpu(), gpu()}, {link(0, 1, 1, 0)});
  EXPECT_EQ(run(pair, demand, epochs_of(1000)).metrics.at("epochs"),
            3);  // ready within epoch 1, sent in epoch 2
}

TEST(Lp, ToleranceOfFirstOrderMethodsSavesNoEpoch) {
  // All data takes 61 epochs; the search begins at 56, which carry more than nine tenths of it.
  const auto ring = one_way_ring(3);
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  EngineOptions options = epochs_of(50);
  options.bound_us = 2800;
  const auto alone = make_local_communicator();
  PdhgOptions rough;
  rough.tolerance = 1e-3;
  Toolbox by_pdhg = tools();
  by_pdhg.lp = make_pdhg_solver(*alone, rough);
  for (const Toolbox& toolbox : {tools(), by_pdhg})
    EXPECT_EQ(prepare_lp({ring, demand}, options, toolbox)(demand, options).metrics.at("epochs"), 61);
}

TEST(Lp, AFirstOrderSolveEndsSoonAfterAnInterruptionNearItsEnd) {
  const Instance instance{shipped("ndv2-2"), make_demand(Collective::alltoall, kMB, 16, 1)};
  const auto alone = make_local_communicator();
  std::vector<PdhgIterate> iterates;
  PdhgOptions options;
  options.store.offer = [&](std::uint64_t, const std::function<PdhgIterate()>& iterate, bool) {
    iterates.push_back(iterate());
  };
  const auto bound_us = [&] {
    Toolbox by_pdhg = tools();
    by_pdhg.lp = make_pdhg_solver(*alone, options);
    return lower_bounds(instance, by_pdhg, false).best().us;
  };
  const double whole_us = bound_us();
  options.store.offer = nullptr;
  const std::int64_t all = iterates.back().iterations;
  // Even with a primal weight that is far off.
  options.start = iterates.back();
  options.start->primal_weight *= 1e-4;
  EXPECT_NEAR(bound_us(), whole_us, 1e-5 * whole_us);

  std::int64_t sum = 0;
  constexpr std::ptrdiff_t kInterruptions = 20;
  for (auto iterate = iterates.end() - kInterruptions; iterate != iterates.end(); ++iterate) {
    options.start = *iterate;
    std::int64_t iterations = 0;
    options.progress = [&](const PdhgProgress& now) { iterations = now.iterations - iterate->iterations; };
    EXPECT_NEAR(bound_us(), whole_us, 1e-5 * whole_us) << "after " << iterate->iterations;
    sum += iterations;
  }
  EXPECT_LT(sum / kInterruptions, all / 5);
}

TEST(Lp, DataGoesNowhereTwice) {
  // The model's flow goes around where links are idle, the schedule does not.
  const auto mesh = std::make_shared<const Topology>(
      generate_topology("mesh", {{"dims", "3x4"}, {"bandwidth_GBps", "25"}, {"latency_us", "1"}}));
  const Demand demand = make_demand(Collective::alltoall, 16 * kMB, 12, 1);
  const auto alone = make_local_communicator();
  PdhgOptions rough;
  rough.tolerance = 1e-4;
  Toolbox by_pdhg = tools();
  by_pdhg.lp = make_pdhg_solver(*alone, rough);
  EngineOptions options;
  options.symmetry = false;
  for (options.seed = 0; options.seed < 3; ++options.seed) {
    const EngineResult result = run(mesh, demand, options, 1, by_pdhg);
    std::set<std::pair<int, int>> visited;
    for (const Send& send : result.schedule->sends) {
      const Link& link = mesh->link(send.link);
      EXPECT_NE(link.dst, mesh->node_of(demand.origin(send.chunk)));
      EXPECT_TRUE(visited.insert({send.chunk.value, link.dst.value}).second);
    }
  }
}

TEST(Lp, TooFewEpochsAreNamed) {
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  expect_error(ExitCode::unavailable, {"3 epochs", "allow more"}, [&] {
    prepare_lp({one_way_ring(3), demand}, epochs_of(1000, 3), tools());
  });
  // One epoch reaches nobody.
  expect_error(ExitCode::unavailable, {"1 epochs", "0%"}, [&] {
    prepare_lp({one_way_ring(3), demand}, epochs_of(1000, 1), tools());
  });
}

TEST(Lp, CapIsStatedWithItsRemedy) {
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  EngineOptions options = epochs_of(0.01);
  options.epochs.spacing = EpochSpacing::uniform;
  expect_error(ExitCode::unavailable, {"250000", "--epoch-multiplier"}, [&] {
    prepare_lp({one_way_ring(3), demand}, options, tools());
  });
}

TEST(Lp, CoarseSpacingSolvesWhatUniformCannot) {
  // Some 300,000 epochs in a few intervals; uniform epochs could not end before 3001 us.
  const Demand demand = make_demand(Collective::alltoall, 3 * kMB, 3, 1);
  const EngineResult result = run(one_way_ring(3), demand, epochs_of(0.01), 8);
  EXPECT_LE(result.metrics.at("intervals"), 60);
  EXPECT_GE(result.metrics.at("model_finish_us"), 3001 - 1e-3);
  EXPECT_LE(result.metrics.at("model_finish_us"), 3001 * 1.001);
  EXPECT_NEAR(result.metrics.at("rounded_us"), 3000, 1e-6);
  EXPECT_EQ(result.metrics.at("realised_us"), result.schedule->finish_us);
}

TEST(Lp, CoarseSpacingLosesLittle) {
  for (const Fabric& topology : {one_way_ring(4), star(4), star(3, Forwarding::store_and_forward)}) {
    const Demand demand = make_demand(Collective::alltoall, 4 * kMB, topology->num_gpus(), 1);
    EngineOptions options = epochs_of(50);
    options.epochs.spacing = EpochSpacing::uniform;
    const double uniform = run(topology, demand, options, 4).metrics.at("model_finish_us");
    options.epochs.spacing = EpochSpacing::coarse;
    const double coarse = run(topology, demand, options, 4).metrics.at("model_finish_us");
    EXPECT_GE(coarse, uniform - 1e-6);  // a restriction of the same flow
    EXPECT_LE(coarse, uniform * 1.03);
  }
}

TEST(Lp, RefusesMulticast) {
  expect_error(ExitCode::unavailable, {"multicast"}, [] {
    prepare_lp({star(3), make_demand(Collective::allgather, 1e6, 3, 1)}, epochs_of(100), tools());
  });
}

// TE-CCL, Table 8: 325000 us with epochs of the slowest link, found in 14.8 s.
TEST(Lp, Ndv2WithEpochsOfTheSlowestLink) {
  EngineOptions options;
  options.epochs.rule = EpochRule::slowest_link;
  const EngineResult result = run(shipped("ndv2-2"), make_demand(Collective::alltoall, 1e9, 16, 1), options);
  EXPECT_DOUBLE_EQ(result.metrics.at("model_finish_us"), 325000);
  EXPECT_LE(result.schedule->finish_us, 320001.3 * 1.001);
}

}  // namespace
}  // namespace rondo::test_lp
