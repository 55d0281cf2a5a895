#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Schedules on links whose bandwidth changes.
namespace rondo::test_changing_bandwidth {
namespace {

/// A mesh of 2 x 3 GPUs some links of which change at `at_us`.
std::shared_ptr<const Topology> changing_mesh(double at_us, double factor, double until_us = 0) {
  TopologyData data =
      generated("mesh", {{"dims", "2x3"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}})->data();
  for (const std::size_t l : {std::size_t{0}, std::size_t{5}}) {
    Link& link = data.links[l];
    link.bandwidth_steps = {{0, link.bandwidth_GBps}, {at_us, factor * link.bandwidth_GBps}};
    if (until_us > 0) link.bandwidth_steps.push_back({until_us, link.bandwidth_GBps});
  }
  return std::make_shared<const Topology>(std::move(data));
}

SynthesisResult solve_changing(const std::shared_ptr<const Topology>& topology, Collective collective,
                               const std::string& engine = "auto") {
  SolveOptions options;
  options.engine = engine;
  options.improve_work = 2e5;
  const SynthesisResult result =
      synthesize({topology, make_demand(collective, 6e5, topology->num_gpus(), 1), options},
                 {*make_local_communicator()});
  verify(result.proven);
  return result;
}

TEST(ChangingBandwidth, LinksHalveOrGoDown) {
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    SCOPED_TRACE(std::string(to_string(collective)));
    EXPECT_LT(solve_changing(changing_mesh(100, 0.5), collective).gap, 0.35);
    EXPECT_LT(solve_changing(changing_mesh(100, 0, 200), collective).gap, 0.5);
    EXPECT_LT(solve_changing(changing_mesh(100, 0), collective).gap, 0.5);
  }
}

TEST(ChangingBandwidth, SumsAreTimedOnIt) {
  EXPECT_LT(solve_changing(changing_mesh(100, 0.5), Collective::allreduce).gap, 1.5);
  expect_error(ExitCode::unavailable, {"bandwidth_steps"},
               [] { solve_changing(changing_mesh(100, 0.5), Collective::reduce_scatter); });
}

TEST(ChangingBandwidth, KnowingItIsBetterThanNot) {
  const auto whole = generated("mesh", {{"dims", "2x3"}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
  const auto changing = changing_mesh(100, 0.25);
  const SynthesisResult unaware = solve_changing(whole, Collective::allgather);
  const Schedule replayed = replayed_elsewhere(unaware.proven, *changing, unaware.proven.demand);
  EXPECT_LT(solve_changing(changing, Collective::allgather).proven.schedule.finish_us, replayed.finish_us);
}

TEST(ChangingBandwidth, IsRefusedByEnginesThatDoNotKnowIt) {
  const auto changing = changing_mesh(100, 0.5);
  for (const char* engine : {"queue", "trees", "milp", "rounds"}) {
    expect_error(ExitCode::unavailable, {"link 0", engine, "--engine list"},
                 [&] { solve_changing(changing, Collective::allgather, engine); });
  }
  expect_error(ExitCode::unavailable, {"link 0", "flow", "--engine list"},
               [&] { solve_changing(changing, Collective::alltoall, "flow"); });
}

/// Two GPUs with 100 KB for each other, 100 us over the links as they begin; one of them changes.
SynthesisResult exchange_by_lp(const std::vector<BandwidthStep>& steps, SolveOptions options = {}) {
  TopologyData data =
      generated("full", {{"gpus", "2"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}})->data();
  data.links[0].bandwidth_steps = steps;
  const auto pair = std::make_shared<const Topology>(std::move(data));
  options.engine = "lp";
  options.epochs.rule = EpochRule::fixed;
  options.epochs.tau_us = 10;
  const SynthesisResult result =
      synthesize({pair, make_demand(Collective::alltoall, 2e5, 2, 1), options}, {*make_local_communicator()});
  verify(result.proven);
  return result;
}

TEST(ChangingBandwidth, LinearProgramsCountWhatPasses) {
  const auto model_us = [](const std::vector<BandwidthStep>& steps,
                           EpochSpacing spacing = EpochSpacing::automatic) {
    SolveOptions options;
    options.epochs.spacing = spacing;
    return exchange_by_lp(steps, options).metrics.at("model_finish_us");
  };
  EXPECT_DOUBLE_EQ(model_us({}), 100);
  EXPECT_DOUBLE_EQ(model_us({{0, 1}, {1000, 0.5}}), 100);
  EXPECT_DOUBLE_EQ(model_us({{0, 1}, {50, 0.5}}), 150);
  EXPECT_DOUBLE_EQ(model_us({{0, 1}, {55, 0.5}}), 150);  // 145 us, in whole epochs
  EXPECT_DOUBLE_EQ(model_us({{0, 1}, {50, 0}, {80, 2}}), 110);
  EXPECT_GE(model_us({{0, 1}, {50, 0.5}}, EpochSpacing::coarse), 150);
  EXPECT_DOUBLE_EQ(exchange_by_lp({{0, 1}, {55, 0.5}}).proven.schedule.finish_us, 145);
}

TEST(ChangingBandwidth, LinearProgramsByColumnsDoNotKnowIt) {
  SolveOptions options;
  options.lp_solver = "columns";
  expect_error(ExitCode::unavailable, {"bandwidth_steps", "--lp-solver columns"}, [&] {
    exchange_by_lp({{0, 1}, {50, 0.5}}, options);
  });
}

}  // namespace
}  // namespace rondo::test_changing_bandwidth
