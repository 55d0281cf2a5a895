#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Schedules on links whose bandwidth changes.
namespace rondo {
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
  for (const char* engine : {"flow", "lp"}) {
    expect_error(ExitCode::unavailable, {"link 0", engine, "--engine list"},
                 [&] { solve_changing(changing, Collective::alltoall, engine); });
  }
}

}  // namespace
}  // namespace rondo
