// Windows of a schedule: what the rounds make of it depends neither on the number of ranks nor on where a run
// was stopped.

#include <gtest/gtest.h>

#include <vector>

#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/solvers/solvers.hpp"
#include "rondo/windows/window_rounds.hpp"
#include "same_sends.hpp"

namespace rondo::windows_test {
namespace {

class WindowRanks : public testing::Test {
 protected:
  void SetUp() override { begin(); }

  void begin() {
    EngineOptions options;
    start_ = *prepare_list({torus_, demand_}, options, {})(demand_, options).schedule;
  }

  Schedule repair(const Communicator& communicator, const std::vector<RoundRecord>& finished = {}) {
    const WindowsProblem problem{
        .topology = *torus_, .demand = demand_, .seed = 1, .windows = 2, .model_work = 1.5e7};
    const std::optional<Schedule> start = finished.empty() ? std::optional(start_) : std::nullopt;
    RoundsNotes notes;
    records_ = finished;
    return repair_in_windows(
               problem, *make_cbc_solver(), communicator, finished, start,
               [&](const RoundRecord& record) { records_.push_back(record); }, notes)
        .schedule;
  }

  std::shared_ptr<const Topology> torus_ =
      std::make_shared<const Topology>(degrade(generate_topology("torus", {{"dims", "4x4"}}), 0.1, 0.5, 2));
  Demand demand_ = make_demand(Collective::allgather, 16e6, 16, 4);
  Schedule start_;
  std::vector<RoundRecord> records_;
};

TEST_F(WindowRanks, TheResultIsThatOfOneRank) {
  const Schedule alone = repair(*make_local_communicator());
  EXPECT_LT(alone.finish_us, start_.finish_us);
  const ReplayResult replayed = replay(*torus_, demand_, alone.sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  expect_same_sends(repair(*make_world_communicator()), alone);
}

TEST_F(WindowRanks, ResumesAfterAnyRound) {
  const auto world = make_world_communicator();
  const Schedule undisturbed = repair(*world);
  const std::vector<RoundRecord> all = records_;
  ASSERT_GT(all.size(), 2U);
  for (std::size_t k = 1; k <= all.size(); ++k) {
    expect_same_sends(repair(*world, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k)}),
                      undisturbed);
    EXPECT_EQ(records_.size(), all.size()) << "after " << k;
  }
}

TEST_F(WindowRanks, AllToAllEndsAlikeAfterAnyRound) {
  demand_ = make_demand(Collective::alltoall, 16e6, 16, 1);
  begin();
  const Schedule alone = repair(*make_local_communicator());
  EXPECT_LE(alone.finish_us, start_.finish_us);
  const std::vector<RoundRecord> all = records_;
  const auto world = make_world_communicator();
  expect_same_sends(repair(*world), alone);
  expect_same_sends(repair(*world, {all.begin(), all.begin() + 1}), alone);
  EXPECT_EQ(records_.size(), all.size());
}

}  // namespace
}  // namespace rondo::windows_test
