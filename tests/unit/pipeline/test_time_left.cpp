#include <gtest/gtest.h>

#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/local_search/justification.hpp"
#include "time_left.hpp"
#include "topologies.hpp"

/// GPU 0 sends four chunks to each of GPUs 1 and 2, all of them over its own links, 80.5 us; the links
/// between these two are idle. Where each takes a chunk from the other, all is over at 61 us.
namespace rondo::test_time_left {
namespace {

constexpr double kBytes = 4e6;
constexpr double kChunkUs = 20;  ///< 1 MB at 50 GB/s
constexpr double kLatencyUs = 0.5;

class TimeLeft : public testing::Test {
 protected:
  void SetUp() override {
    // Neither search is cut short, and both end once a chunk's time is gained.
    problem_.options.time_limit_s = 3600;
    problem_.options.gap = 0.5 + 1e-6;
    best_.chunks = 4;
    best_.found.schedule = from_the_root_alone();
  }

  Schedule from_the_root_alone() const {
    const PlanSpace space = make_plan_space(*problem_.topology, problem_.demand);
    Schedule schedule;
    for (const int to : {1, 2}) {
      for (const Hop& hop : space.hops) {
        if (hop.src != GpuId{0} || hop.dst != GpuId{to}) continue;
        for (int c = 0; c < 4; ++c)
          append_sends(*problem_.topology, hop, ChunkId{c}, kBytes / 4, c * kChunkUs, schedule.sends);
      }
    }
    schedule.finish_us = 4 * kChunkUs + kLatencyUs;
    canonicalise(schedule);
    return schedule;
  }

  double finish_us() const {
    const ReplayResult replayed = replay(*problem_.topology, problem_.demand, best_.found.schedule->sends);
    EXPECT_TRUE(replayed.valid()) << *replayed.violation;
    EXPECT_DOUBLE_EQ(replayed.finish_us, best_.found.schedule->finish_us);
    return replayed.finish_us;
  }

  std::unique_ptr<Communicator> communicator_ = make_local_communicator();
  std::atomic<bool> interrupt_ = false;
  RunContext context_{.communicator = *communicator_, .interrupt = &interrupt_};
  Problem problem_{generated("full", {{"gpus", "3"}, {"bandwidth_GBps", "50"}, {"latency_us", "0.5"}}),
                   make_demand(Collective::broadcast, kBytes, 3, 4)};
  Bounds bounds_{{LowerBound{2 * kChunkUs + kLatencyUs, CutCertificate{{NodeId{0}}, kBytes}}}};
  StopRule rule_{problem_, bounds_, context_};
  Toolbox tools_ = prepare_toolbox(problem_.options, context_);
  Incumbent best_ = {};
};

TEST_F(TimeLeft, LocalSearchMakesWayForRounds) {
  const double share = share_before_rounds(problem_, best_, rule_, context_);
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
  problem_.options.rounds.model_work = 0;
  EXPECT_EQ(share_before_rounds(problem_, best_, rule_, context_), 1);
}

TEST_F(TimeLeft, RoundsRepairTheScheduleFirst) {
  improve_in_turn(problem_, tools_, std::nullopt, best_, rule_, context_);
  EXPECT_LE(finish_us(), 3 * kChunkUs + 2 * kLatencyUs + 1e-9);
  EXPECT_GE(best_.found.metrics.at("rounds"), 1);
  EXPECT_EQ(best_.found.metrics.at("finish_before_rounds_us"), 4 * kChunkUs + kLatencyUs);
  EXPECT_EQ(best_.found.metrics.count("improvement_tries"), 0U) << "local search was not asked";
}

/// A start that is far behind, or no later than the best schedule, has no turn.
TEST_F(TimeLeft, RoundsBeginWithTheBestScheduleWhateverTheStart) {
  for (const double later : {0.0, 100.0}) {
    best_.found.schedule = from_the_root_alone();
    Incumbent listed = best_;
    listed.engine = "by hand";
    listed.found.schedule->finish_us += later;
    improve_in_turn(problem_, tools_, listed, best_, rule_, context_);
    EXPECT_LE(finish_us(), 3 * kChunkUs + 2 * kLatencyUs + 1e-9);
    EXPECT_NE(best_.engine, "by hand");
  }
}

TEST_F(TimeLeft, NothingIsDoneWhereRoundsAreLeftOut) {
  problem_.options.rounds.model_work = 0;
  improve_in_turn(problem_, tools_, std::nullopt, best_, rule_, context_);
  EXPECT_DOUBLE_EQ(finish_us(), 4 * kChunkUs + kLatencyUs);
  EXPECT_EQ(best_.found.metrics.count("rounds"), 0U);
}

TEST_F(TimeLeft, ASignalLeavesTheScheduleAsItIs) {
  interrupt_ = true;
  improve_in_turn(problem_, tools_, std::nullopt, best_, rule_, context_);
  EXPECT_DOUBLE_EQ(finish_us(), 4 * kChunkUs + kLatencyUs);
  EXPECT_EQ(rule_.limits_hit(), std::vector<std::string>{"interrupted"});
}

}  // namespace
}  // namespace rondo::test_time_left
