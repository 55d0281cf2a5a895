#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "explore.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "topologies.hpp"

namespace rondo::test_explore {
namespace {

/// Says that an AllGather of four GPUs is over at once, with one send.
EngineInfo wrong_engine() {
  EngineInfo row = find_engine("list");
  row.name = "wrong";
  row.policies = {};
  row.prepare = [](const Instance&, const EngineOptions&, const Toolbox&) -> PreparedEngine {
    return [](const Demand&, const EngineOptions&) {
      Schedule schedule;
      schedule.sends.push_back({ChunkId{0}, LinkId{0}, 0, 1e-3, 1e-3});
      schedule.finish_us = 1e-3;
      EngineResult result;
      result.schedule = schedule;
      return result;
    };
  };
  return row;
}

/// An AllGather on four GPUs around a switch, with the wrong engine beside those of `which`.
Exploration explored(bool with_others) {
  Problem problem{star(4), make_demand(Collective::allgather, 4 * kMB, 4, 1)};
  problem.start = std::make_shared<ProvenSchedule>(ProvenSchedule{
      *problem.topology, problem.demand, {}});  // so that EngineRunner has a place for one more
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  std::atomic<bool> interrupt = false;
  const RunContext context{.communicator = *communicator, .interrupt = &interrupt};
  const Toolbox tools = make_toolbox();
  const Bounds bounds = lower_bounds(problem.instance(), tools);
  EngineRunner runner(
      problem, bounds, tools, context, [&](const EngineInfo&) { return with_others; }, wrong_engine());
  StopRule rule(problem, bounds, context);
  return explore(problem, runner, rule, context);
}

TEST(Explore, AFaultOfOneEngineIsARemarkWhereOthersGoOn) {
  const Exploration found = explored(true);
  ASSERT_TRUE(found.best.found.schedule);
  EXPECT_TRUE(replay(*star(4), make_demand(Collective::allgather, 4 * kMB, 4, found.best.chunks),
                     found.best.found.schedule->sends)
                  .valid());
  ASSERT_FALSE(found.best.found.remarks.empty());
  EXPECT_NE(found.best.found.remarks.back().find("the replay refuses the schedule of engine wrong"),
            std::string::npos)
      << found.best.found.remarks.back();
}

/// Seeds that list scheduling was tried with for a mesh.
std::set<std::uint64_t> tried_seeds(const std::optional<ToBeat>& to_beat) {
  const Problem problem{generated("mesh", {{"dims", "2x3"}}), make_demand(Collective::allgather, 64e3, 6, 1)};
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  const RunContext context{*communicator};
  const Toolbox tools = make_toolbox();
  const Bounds bounds = lower_bounds(problem.instance(), tools);
  EngineRunner runner(problem, bounds, tools, context,
                      [](const EngineInfo& engine) { return engine.name == "list"; });
  StopRule rule(problem, bounds, context);
  std::set<std::uint64_t> seeds;
  for (const Trial& trial : explore(problem, runner, rule, context, false, to_beat).state.trials)
    seeds.insert(trial.candidate.seed);
  return seeds;
}

TEST(Explore, TriesNoOtherSeedsWhereTheBestIsLaterThanWhatIsToBeBeaten) {
  const double never_us = 1e9;
  const double at_once_us = 1e-3;
  EXPECT_GT(tried_seeds(std::nullopt).size(), 1U);
  EXPECT_GT(tried_seeds(ToBeat{never_us, never_us}).size(), 1U);
  EXPECT_EQ(tried_seeds(ToBeat{at_once_us, never_us}).size(), 1U);
}

TEST(Explore, WithoutAScheduleTheFaultIsTheError) {
  try {
    explored(false);
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
  }
}

}  // namespace
}  // namespace rondo::test_explore
