#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/solvers/solvers.hpp"
#include "rondo/windows/window_rounds.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"
#include "window_model.hpp"
#include "window_solver.hpp"

/// Windows of a plan that can be improved by hand: GPU 0 sends four chunks to each of GPUs 1 and 2, all of
/// them over its own links, and the links between these two are idle.
namespace rondo::test_windows {
namespace {

constexpr double kBytes = 4e6;
constexpr double kChunkUs = 20;  ///< 1 MB at 50 GB/s
constexpr double kLatencyUs = 0.5;

const Hop& hop(const HopTable& hops, int from, int to) {
  return *std::ranges::find_if(hops.hops(),
                               [&](const Hop& h) { return h.src == GpuId{from} && h.dst == GpuId{to}; });
}

class Windows : public testing::Test {
 protected:
  std::shared_ptr<const Topology> full_ =
      generated("full", {{"gpus", "3"}, {"bandwidth_GBps", "50"}, {"latency_us", "0.5"}});
  Demand demand_ = make_demand(Collective::broadcast, kBytes, 3, 4);

  /// One chunk after another over both links of GPU 0.
  Schedule from_the_root_alone() const {
    const HopTable hops(*full_);
    Schedule schedule;
    for (int c = 0; c < 4; ++c) {
      for (const int to : {1, 2})
        append_sends(*full_, hop(hops, 0, to), ChunkId{c}, kBytes / 4, c * kChunkUs, schedule.sends);
    }
    schedule.finish_us = 4 * kChunkUs + kLatencyUs;
    canonicalise(schedule);
    return schedule;
  }

  WindowsProblem problem() const {
    return {.topology = *full_, .demand = demand_, .bound_us = 2 * kChunkUs, .model_work = 1e5};
  }

  Schedule repair(const WindowsProblem& problem, const std::vector<RoundRecord>& finished,
                  const std::optional<Schedule>& start) {
    records_ = finished;
    return repair_in_windows(
               problem, *make_cbc_solver(), *make_local_communicator(), finished, start,
               [&](const RoundRecord& record) { records_.push_back(record); }, notes_)
        .schedule;
  }

  std::vector<RoundRecord> records_;
  RoundsNotes notes_;
};

// Each GPU takes one chunk from the other instead: both links of GPU 0 are free a chunk's time earlier. No
// more, since all that may move in the model is one chunk's time.
TEST_F(Windows, LambdaIsAChunksTime) {
  PlanSpace space = make_plan_space(*full_, demand_);
  const SurveyedPlan plan = survey(*plan_of(from_the_root_alone(), space), space);
  const PlanView view(plan, space, kChunkUs);
  const Window window = WindowChooser(plan).from(0, 100);
  ASSERT_EQ(window.members.size(), 8U);
  const WindowModel built = window_model(view, window);
  EXPECT_LE(max_violation(built.model, built.start), 1e-6);
  const WindowAnswer answer = solve_window(view, window, *make_cbc_solver(), {});
  EXPECT_EQ(answer.outcome, "optimal");
  EXPECT_NEAR(answer.lambda_us, kChunkUs, 1e-6);
  EXPECT_GE(answer.detours, 2);
}

// A window of the first chunk alone: the other GPU has it in no time that would help.
TEST_F(Windows, NothingIsGainedWhereNobodyElseHoldsAChunk) {
  PlanSpace space = make_plan_space(*full_, demand_);
  const SurveyedPlan plan = survey(*plan_of(from_the_root_alone(), space), space);
  const PlanView view(plan, space, kChunkUs);
  const Window window = WindowChooser(plan).from(0, 3);
  ASSERT_EQ(window.members.size(), 2U);
  EXPECT_NEAR(window.until_us, kChunkUs, 1e-5);
  const WindowAnswer answer = solve_window(view, window, *make_cbc_solver(), {});
  EXPECT_NEAR(answer.lambda_us, 0, 1e-6);
}

TEST_F(Windows, MembersHaveToStartInTheWindow) {
  PlanSpace space = make_plan_space(*full_, demand_);
  const SurveyedPlan plan = survey(*plan_of(from_the_root_alone(), space), space);
  const Window window = WindowChooser(plan).from(kChunkUs, 5);
  ASSERT_EQ(window.members.size(), 4U);  // chunks 1 and 2
  EXPECT_EQ(window.from_us, kChunkUs);
  EXPECT_NEAR(window.until_us, 3 * kChunkUs, 1e-5);
  for (const int i : window.members) {
    EXPECT_GE(plan.plan.transfers[static_cast<std::size_t>(i)].start_us, kChunkUs);
    EXPECT_LT(plan.latest_start_us[static_cast<std::size_t>(i)], window.until_us);
  }
  const WindowAnswer answer = solve_window(PlanView(plan, space, kChunkUs), window, *make_cbc_solver(), {});
  EXPECT_GE(answer.lambda_us, -1e-6);
  EXPECT_LE(answer.lambda_us, kChunkUs + 1e-6);
}

TEST_F(Windows, RoundsRepairTheSchedule) {
  const Schedule repaired = repair(problem(), {}, from_the_root_alone());
  const ReplayResult replayed = replay(*full_, demand_, repaired.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_LE(replayed.finish_us, 3 * kChunkUs + 2 * kLatencyUs);
  ASSERT_GE(records_.size(), 2U);
  std::int64_t changed = 0;
  double finish_us = from_the_root_alone().finish_us;
  for (const RoundRecord& record : records_) {
    EXPECT_EQ(record.finish_before_us, finish_us);
    EXPECT_LE(record.finish_after_us, record.finish_before_us);
    finish_us = record.finish_after_us;
    for (const RoundPart& part : record.parts) changed += part.transfers_changed;
  }
  EXPECT_GE(changed, 2);
  EXPECT_TRUE(records_.front().plan.has_value());
  EXPECT_EQ(records_.front().state.unmet.size(), demand_.num_deliveries());
  EXPECT_TRUE(records_.back().state.unmet.empty());
  expect_same_sends(reassemble(*full_, demand_, records_), repaired);
}

TEST_F(Windows, ResumeAfterAnyRoundEndsAlike) {
  const Schedule undisturbed = repair(problem(), {}, from_the_root_alone());
  const std::vector<RoundRecord> all = records_;
  for (std::size_t k = 1; k <= all.size(); ++k) {
    const std::vector<RoundRecord> finished(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k));
    expect_same_sends(repair(problem(), finished, {}), undisturbed);
    EXPECT_EQ(records_.size(), all.size()) << "after " << k;
  }
}

TEST_F(Windows, AScheduleThatIsGoodEnoughIsCommittedAtOnce) {
  WindowsProblem good = problem();
  good.stop_at_us = 100;
  const Schedule start = from_the_root_alone();
  expect_same_sends(repair(good, {}, start), start);
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_TRUE(records_.front().parts.empty());
  EXPECT_EQ(records_.front().end_us, start.finish_us);
}

/// A chain of three GPUs, where one chunk waits in GPU 1 until it is there as a whole: 2 x 1000 us and two
/// latencies; in four chunks 5 x 250 us.
class Splitting : public testing::Test {
 protected:
  RepairedSchedule repair(int most_chunks, const std::vector<RoundRecord>& finished = {}) {
    const int chunks = finished.empty() ? 1 : static_cast<int>(finished.back().chunks);
    const Demand demand = demand_.with_chunks(chunks);
    std::optional<Schedule> start;
    if (finished.empty()) {
      start.emplace();
      start->sends = {{ChunkId{0}, LinkId{0}, 0, 1000, 1001}, {ChunkId{0}, LinkId{1}, 1001, 2001, 2002}};
      start->finish_us = 2002;
    }
    records_ = finished;
    RoundsNotes notes;
    const WindowsProblem problem{.topology = *chain_,
                                 .demand = demand,
                                 .bound_us = 1002,
                                 .most_chunks = most_chunks,
                                 .model_work = 1e6};
    return repair_in_windows(
        problem, *make_cbc_solver(), *make_local_communicator(), finished, start,
        [&](const RoundRecord& record) { records_.push_back(record); }, notes);
  }

  std::shared_ptr<const Topology> chain_ =
      fabric(std::vector<Node>(3), {link(0, 1), link(1, 2), link(2, 1), link(1, 0)});
  Demand demand_ = make_demand(Collective::broadcast, kMB, 3, 1);
  std::vector<RoundRecord> records_;
};

TEST_F(Splitting, ChunksAreSplitAsLongAsTheyMayBe) {
  const RepairedSchedule repaired = repair(4);
  EXPECT_EQ(repaired.chunks, 4);
  EXPECT_NEAR(repaired.schedule.finish_us, 1252, 1e-6);
  EXPECT_TRUE(replay(*chain_, demand_.with_chunks(4), repaired.schedule.sends).valid());
  EXPECT_EQ(records_.front().chunks, 1);
  EXPECT_EQ(records_.back().chunks, 4);
  EXPECT_EQ(repair(1).chunks, 1);
}

TEST_F(Splitting, ResumesInTheChunksOfTheLastRound) {
  const RepairedSchedule undisturbed = repair(4);
  const std::vector<RoundRecord> all = records_;
  for (std::size_t k = 1; k <= all.size(); ++k) {
    const RepairedSchedule again = repair(4, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k)});
    expect_same_sends(again.schedule, undisturbed.schedule);
    EXPECT_EQ(again.chunks, 4);
    EXPECT_EQ(records_.size(), all.size()) << "after " << k;
  }
}

/// AllGather around a ring, 16 chunks of 4 us over each of its links, where every two GPUs are joined: over
/// all links it takes 16.5 us. The rounds have no windows here.
TEST(ReplantingInRounds, TreesAreGrownAnew) {
  const auto full = generated("full", {{"gpus", "5"}, {"bandwidth_GBps", "50"}, {"latency_us", "0.5"}});
  const Demand demand = make_demand(Collective::allgather, 4e6, 5, 4);
  const HopTable hops(*full);
  Schedule start;
  for (int origin = 0; origin < 5; ++origin) {
    for (int c = 0; c < 4; ++c) {
      const int chunk = 4 * origin + c;
      for (int step = 1; step < 5; ++step)  // around the ring
        append_sends(*full, hop(hops, (origin + step - 1) % 5, (origin + step) % 5), ChunkId{chunk},
                     demand.bytes(ChunkId{chunk}), 20.5 * (4 * (step - 1) + c), start.sends);
    }
  }
  canonicalise(start);
  const ReplayResult before = replay(*full, demand, start.sends);
  ASSERT_TRUE(before.valid()) << *before.violation;
  start.finish_us = before.finish_us;
  std::vector<RoundPart> parts;
  RoundsNotes notes;
  const RepairedSchedule repaired = repair_in_windows(
      {.topology = *full, .demand = demand, .windows = 0, .bound_us = 16.5, .model_work = 1e6},
      *make_cbc_solver(), *make_local_communicator(), {}, start,
      [&](const RoundRecord& record) { parts.insert(parts.end(), record.parts.begin(), record.parts.end()); },
      notes);
  EXPECT_LT(repaired.schedule.finish_us, 0.5 * 64.5);
  EXPECT_TRUE(replay(*full, demand, repaired.schedule.sends).valid());
  ASSERT_FALSE(parts.empty());
  EXPECT_EQ(parts.front().name, "replanting");
  EXPECT_EQ(parts.front().outcome, "earlier");
  EXPECT_GT(parts.front().rows, 0);
}

// GPU 0 sends four chunks to GPUs 1 and 2, copied by the switch, and GPU 3 two chunks to GPU 2 after that.
// GPU 1 can pass on to GPU 2 what both receive, over a link of its own.
TEST(CopiesInWindows, ACopyTakesAnotherWay) {
  std::vector<Node> nodes(4);
  nodes.push_back(network_switch());
  const auto topology = fabric(nodes, {link(0, 4), link(3, 4), link(4, 1), link(4, 2), link(1, 2)});
  const Demand demand(Collective::custom, kMB, 4,
                      {Contribution{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}, GpuId{2}}},
                       Contribution{.origin = GpuId{3}, .bytes = kMB / 2, .destinations = {GpuId{2}}}},
                      1);
  const Demand chunks = demand.with_chunks(4);
  Schedule start;
  const auto send = [&](int chunk, int l, double at_us) {
    const double us = chunks.bytes(ChunkId{chunk}) * 1e-3;
    start.sends.push_back({ChunkId{chunk}, LinkId{l}, at_us, at_us + us, at_us + us + 1});
  };
  for (int c = 0; c < 4; ++c) {
    send(c, 0, 250 * c);
    send(c, 2, 250 * c + 1);
    send(c, 3, 250 * c + 1);
  }
  for (int c = 4; c < 8; ++c) {
    send(c, 1, 1000 + 125 * (c - 4));
    send(c, 3, 1001 + 125 * (c - 4));
  }
  start.finish_us = 1502;
  canonicalise(start);
  ASSERT_TRUE(replay(*topology, chunks, start.sends).valid());

  PlanSpace space = make_plan_space(*topology, chunks);
  const SurveyedPlan plan = survey(*plan_of(start, space), space);
  const PlanView view(plan, space, 250);
  const WindowModel built = window_model(view, WindowChooser(plan).from(0, 100));
  EXPECT_LE(max_violation(built.model, built.start), 1e-6);

  RoundsNotes notes;
  const Schedule repaired =
      repair_in_windows(
          {.topology = *topology, .demand = chunks, .bound_us = 1000, .model_work = 1e5}, *make_cbc_solver(),
          *make_local_communicator(), {}, start, [](const RoundRecord&) {}, notes)
          .schedule;
  const ReplayResult replayed = replay(*topology, chunks, repaired.sends);
  ASSERT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_LE(replayed.finish_us, 1255);
  EXPECT_TRUE(notes.remarks.empty());
}

}  // namespace
}  // namespace rondo::test_windows
