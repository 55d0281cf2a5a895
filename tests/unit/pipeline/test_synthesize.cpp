#include <gtest/gtest.h>

#include <algorithm>

#include "last_resort.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_synthesize {
namespace {

SynthesisResult solve(const std::shared_ptr<const Topology>& topology, Collective collective, double bytes,
                      const SolveOptions& options = {}) {
  const Demand demand = make_demand(collective, bytes, topology->num_gpus(), 1);
  return synthesize({topology, demand, options}, {*make_local_communicator()});
}

// A mesh has no symmetry to halve by; along deep trees few chunks take long to come through.
TEST(Synthesize, SpanningTreesOfAMeshAreFilledByMoreChunks) {
  const auto mesh = std::make_shared<const Topology>(
      generate_topology("mesh", {{"dims", "2x8"}, {"bandwidth_GBps", "25"}}));
  SolveOptions asked;
  asked.engine = "spanning";
  asked.policy = "in-order";
  const SynthesisResult result = solve(mesh, Collective::allreduce, 1e9, asked);
  const int chunks = result.proven.demand.chunks_per_contribution();
  EXPECT_GT(chunks, 4096);
  EXPECT_LE(chunks, 512 * 16);
  EXPECT_LT(result.by_chunks.at(chunks).finish_us, result.by_chunks.at(chunks / 2).finish_us);
}

// Before list scheduling, which ends farther from the bound.
TEST(Synthesize, OfAFatTreeIsNearAtOnce) {
  const auto tree = std::make_shared<const Topology>(
      generate_topology("fat_tree", {{"leaves", "4"}, {"gpus", "4"}, {"spines", "2"}}));
  SolveOptions near;
  near.gap = 0.01;
  const SynthesisResult result = solve(tree, Collective::allgather, 1e6, near);
  EXPECT_EQ(result.engine, "leaves");
  EXPECT_LT(result.proven.schedule.finish_us, 1.01 * result.proven.lower_bound->us);
  EXPECT_EQ(result.candidates.size(), 1U);
}

// Of a part `auto` would leave it to others.
TEST(Synthesize, AQuickEngineThatIsAskedForMakesPartsHoweverFarFromTheirBounds) {
  const auto tree = std::make_shared<const Topology>(generate_topology(
      "fat_tree", {{"leaves", "3"}, {"gpus", "2"}, {"spines", "2"}, {"multicast", "false"}}));
  SolveOptions asked;
  asked.engine = "leaves";
  const SynthesisResult sum = solve(tree, Collective::allreduce, 64e3, asked);
  EXPECT_EQ(sum.engine, "halves/leaves+leaves");
  EXPECT_GT(sum.proven.schedule.finish_us, 1.02 * sum.proven.lower_bound->us);
}

TEST(Synthesize, ResumesFromAnyOfItsStatesToTheSameSchedule) {
  // The bound is not met, so that the search goes through all of its batches.
  const auto mesh = generated("mesh", {{"dims", "2x3"}});
  const Demand demand = make_demand(Collective::allgather, 1e5, mesh->num_gpus(), 1);
  SolveOptions options;
  options.engine = "list";
  options.improve_work = 1e5;
  std::vector<std::pair<std::string, Bytes>> states;
  const auto run = [&](StateStore kept) {
    const RunStore store{.checkpoints = std::make_shared<Checkpoints>(std::move(kept), 0)};
    return synthesize({mesh, demand, options}, {.communicator = *make_local_communicator(), .store = store});
  };
  const SynthesisResult whole =
      run({.keep = [&](const std::string& name, const Bytes& state) { states.emplace_back(name, state); }});
  ASSERT_GT(states.size(), 3U);
  EXPECT_EQ(states.front().first, "search");
  EXPECT_EQ(states.back().first, "improvement");
  for (const std::size_t i : {std::size_t{0}, states.size() / 2, states.size() - 2}) {
    const SynthesisResult resumed = run({.newest = [&](const std::string& name) {
      std::optional<Bytes> newest;
      for (std::size_t k = 0; k <= i; ++k) {
        if (states[k].first == name) newest = states[k].second;
      }
      return newest;
    }});
    EXPECT_EQ(resumed.engine, whole.engine) << i;
    expect_same_sends(resumed.proven.schedule, whole.proven.schedule);
  }
}

/// The schedule of a winner before local search: its engine, policy, seed and chunks asked for by name.
SynthesisResult rerun(const std::shared_ptr<const Topology>& topology, double bytes,
                      const SynthesisResult& won) {
  const std::size_t slash = won.engine.find('/');
  const std::size_t last = won.engine.rfind('/');
  EXPECT_EQ(won.engine.substr(last + 1), std::to_string(won.seed));
  SolveOptions options;
  options.engine = won.engine.substr(0, slash);
  options.policy = won.engine.substr(slash + 1, last - slash - 1);
  options.seed = won.seed;
  options.chunks = won.proven.demand.chunks_per_contribution();
  options.improve_work = 0;
  options.gap = 1e9;  // the first schedule is good enough
  return solve(topology, Collective::broadcast, bytes, options);
}

void expect_a_restart_won(const SynthesisResult& result) {
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_NE(result.engine, result.candidates.front().engine);  // the portfolio's winner
  EXPECT_GT(result.proven.demand.chunks_per_contribution(), result.metrics.at("chunks_before_improvement"));
}

TEST(Synthesize, TheReportNamesTheRestartThatWon) {
  SolveOptions options;
  options.engine = "list";
  options.min_chunk_bytes = 1024;
  const auto ring = generated("ring", {{"gpus", "4"}});
  const SynthesisResult won = solve(ring, Collective::broadcast, 20e3, options);
  expect_a_restart_won(won);
  expect_same_sends(won.proven.schedule, rerun(ring, 20e3, won).proven.schedule);
}

TEST(Synthesize, TheReportNamesTheRestartThatLocalSearchBeganWith) {
  SolveOptions options;
  options.engine = "list";
  const auto mesh = generated("mesh", {{"dims", "3x3"}});
  const SynthesisResult won = solve(mesh, Collective::broadcast, 1e6, options);
  expect_a_restart_won(won);
  const double restart_us = rerun(mesh, 1e6, won).proven.schedule.finish_us;
  EXPECT_LT(restart_us, won.metrics.at("finish_before_improvement_us"));
  EXPECT_LT(won.proven.schedule.finish_us, restart_us);
}

TEST(Synthesize, AllGatherOnARingMeetsItsBound) {
  // Four GPUs in a ring both ways: every GPU takes in three parts over two links.
  const auto ring = generated("ring", {{"gpus", "4"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  const SynthesisResult result = solve(ring, Collective::allgather, 4e6);
  EXPECT_NEAR(result.proven.lower_bound->us, 1500, 1e-6);
  EXPECT_NEAR(result.proven.schedule.finish_us, 1500, 1e-3);
  EXPECT_TRUE(replay(*ring, result.proven.demand, result.proven.schedule.sends).valid());
}

TEST(Synthesize, AllToAllOnARingStaysNearItsBound) {
  const auto ring = generated("ring", {{"gpus", "4"}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  const SynthesisResult result = solve(ring, Collective::alltoall, 4e6);
  EXPECT_NEAR(result.proven.lower_bound->us, 2000, 1e-3);  // 4 x (1 + 2 + 1) link crossings over 8 links
  EXPECT_LT(result.gap, 0.02);
  EXPECT_GE(result.gap, -1e-9);
}

/// Double links and single ones share the load by thirds: whole chunks fill them in multiples of 3 alone.
TEST(Synthesize, SameSeedSameSchedule) {
  const auto torus = generated("torus", {{"dims", "3x3"}});
  expect_same_sends(solve(torus, Collective::allgather, 9e6).proven.schedule,
                    solve(torus, Collective::allgather, 9e6).proven.schedule);
}

TEST(Synthesize, StopsAtTheGap) {
  const auto torus = generated("torus", {{"dims", "3x3"}});
  SolveOptions options;
  options.gap = 0.5;
  EXPECT_LE(solve(torus, Collective::allgather, 9e6, options).gap, 0.5);
}

TEST(Synthesize, EngineThatDoesNotSupportTheDemandSaysSo) {
  SolveOptions options;
  options.engine = "flow";
  try {
    solve(generated("ring", {{"gpus", "4"}}), Collective::allgather, 4e6, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
  }
  options.engine = "magic";
  EXPECT_THROW(solve(generated("ring", {{"gpus", "4"}}), Collective::allgather, 4e6, options), Error);
}

TEST(Synthesize, APolicyForOtherFabricsDoesNotEndTheEngine) {
  // No few whole trees fill links around a switch that copies; the other policies have schedules.
  SolveOptions options;
  options.engine = "rooted";
  const SynthesisResult result =
      solve(generated("star", {{"chassis", "2"}, {"gpus", "2"}}), Collective::broadcast, 1e6, options);
  EXPECT_LE(result.gap, 1);
  options.policy = "whole";
  EXPECT_THROW(
      solve(generated("star", {{"chassis", "2"}, {"gpus", "2"}}), Collective::broadcast, 1e6, options),
      Error);
}

TEST(LastResort, DataOfPairsGoStraight) {
  const auto torus = generated("torus", {{"dims", "5x5"}});
  const Demand pairs = make_demand(Collective::alltoall, 16e6, 25, 1);
  EXPECT_EQ(last_resort({torus, pairs}).engine, "direct");
  EXPECT_GT(last_resort({torus, pairs}).sends, 25 * 24);
  EXPECT_EQ(last_resort({torus, make_demand(Collective::allgather, 16e6, 25, 1)}).engine, "list");
}

TEST(Synthesize, ATimeLimitLeavesAScheduleThatIsMadeSoon) {
  // Building the linear program takes more.
  const auto torus = generated("torus", {{"dims", "5x5"}});
  SolveOptions options;
  options.engine = "lp";
  options.symmetry = false;
  options.time_limit_s = 0.01;
  const SynthesisResult result = solve(torus, Collective::alltoall, 16e6, options);
  EXPECT_EQ(result.engine, "direct");
  EXPECT_EQ(result.limits_hit, std::vector<std::string>{"time"});
  ASSERT_FALSE(result.remarks.empty());
  EXPECT_NE(result.remarks.front().find("engine lp found no schedule in time"), std::string::npos);
  EXPECT_GE(result.gap, 0);
}

}  // namespace
}  // namespace rondo::test_synthesize
