#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "engine_runner.hpp"
#include "rondo/core/error.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_engine_runner {
namespace {

/// A demand on four GPUs around a switch, and what an EngineRunner refers to.
class EngineRunnerTest : public testing::Test {
 protected:
  EngineRunner runner(Collective collective, const std::string& engine) {
    problem.demand = make_demand(collective, 4 * kMB, 4, 1);
    problem.options.engine = engine;
    bounds = lower_bounds(problem.instance(), tools);
    return {problem, bounds, tools, context};
  }
  static bool has(const EngineRunner& runner, const std::string& name) {
    return std::ranges::count(runner.engines(), name, &EngineInfo::name) == 1;
  }

  std::unique_ptr<Communicator> communicator = make_local_communicator();
  std::atomic<bool> interrupt = false;
  RunContext context{.communicator = *communicator, .interrupt = &interrupt};
  Toolbox tools = make_toolbox();
  Problem problem{star(4), make_demand(Collective::allgather, 4 * kMB, 4, 1)};
  Bounds bounds = {};
};

TEST_F(EngineRunnerTest, HasTheEngineAskedForAlone) {
  const EngineRunner asked = runner(Collective::allgather, "trees");
  ASSERT_EQ(asked.engines().size(), 1U);
  EXPECT_EQ(asked.engines().front().name, "trees");
}

TEST_F(EngineRunnerTest, AutoHasTheEnginesThatAreApplicable) {
  const EngineRunner allgather = runner(Collective::allgather, "auto");
  EXPECT_TRUE(has(allgather, "list"));
  EXPECT_TRUE(has(allgather, "trees"));
  EXPECT_FALSE(has(allgather, "flow"));
  const EngineRunner alltoall = runner(Collective::alltoall, "auto");
  EXPECT_TRUE(has(alltoall, "flow"));
  EXPECT_FALSE(has(alltoall, "trees"));
  EXPECT_FALSE(has(alltoall, "milp"));  // by name alone
}

TEST_F(EngineRunnerTest, LabelsSayEnginePolicyAndSeed) {
  EXPECT_EQ(runner(Collective::allgather, "list").label({0, 2, "furthest", 3}), "list/furthest/3");
  EXPECT_EQ(runner(Collective::allgather, "trees").label({0, 2}), "trees");  // it has no policies
}

TEST_F(EngineRunnerTest, RunsACandidateWithItsChunksPolicyAndSeed) {
  EngineRunner list = runner(Collective::allgather, "list");
  const EngineResult result = list.run({0, 2, "furthest", 3}, std::nullopt);
  EngineOptions options;
  options.policy = "furthest";
  options.seed = 3;
  const PreparedEngine direct = find_engine("list").prepare(problem.instance(), options, tools);
  expect_same_sends(*result.schedule, *direct(problem.demand.with_chunks(2), options).schedule);
}

TEST_F(EngineRunnerTest, ARerunDoesNotHeedASignal) {
  EngineRunner flow = runner(Collective::alltoall, "flow");
  const Candidate candidate{0, 2, "load", 1};
  const Schedule before = *flow.run(candidate, std::nullopt).schedule;
  interrupt = true;
  EXPECT_FALSE(flow.run(candidate, std::nullopt).schedule);
  expect_same_sends(flow.rerun(candidate), before);
}

TEST_F(EngineRunnerTest, AnEngineHasTheTimeThatIsLeft) {
  using Limits = std::vector<std::string>;
  EXPECT_EQ(runner(Collective::allgather, "milp").run({0, 1}, std::nullopt).limits_hit, Limits{});
  EXPECT_EQ(runner(Collective::allgather, "milp").run({0, 1}, 0.0).limits_hit, Limits{"time"});
}

TEST_F(EngineRunnerTest, AnEngineThatDoesNotSupportTheDemandSaysSo) {
  EngineRunner trees = runner(Collective::alltoall, "trees");
  EXPECT_THROW(trees.run({0, 1}, std::nullopt), Error);
}

}  // namespace
}  // namespace rondo::test_engine_runner
