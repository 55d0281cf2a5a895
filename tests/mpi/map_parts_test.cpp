#include "rondo/parallel/map_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/parallel/metered_communicator.hpp"
#include "rondo/parallel/work_log.hpp"

namespace rondo::map_parts_test {
namespace {

Bytes result_of(std::size_t part) {
  return to_bytes(std::string(part * 10, 'x') + std::to_string(part));
}

void expect_all_parts_done(const Communicator& communicator, const std::vector<double>& work_estimates) {
  std::size_t calls = 0;
  const auto outcomes = map_parts(communicator, work_estimates, [&](std::size_t part) {
    ++calls;
    return result_of(part);
  });
  ASSERT_EQ(outcomes.size(), work_estimates.size());
  for (std::size_t part = 0; part < outcomes.size(); ++part) {
    EXPECT_EQ(outcomes[part].value, result_of(part));
    EXPECT_FALSE(outcomes[part].error.has_value());
    EXPECT_GE(outcomes[part].seconds, 0);
    EXPECT_LT(outcomes[part].rank, communicator.size());
  }
  EXPECT_EQ(communicator.sum(static_cast<double>(calls)), static_cast<double>(work_estimates.size()));
}

TEST(MapParts, MorePartsThanRanks) {
  expect_all_parts_done(*make_world_communicator(), {1, 5, 2, 2, 9, 1, 1, 3, 0, 4, 1});
  expect_all_parts_done(*make_local_communicator(), {1, 5, 2});
}

TEST(MapParts, MoreRanksThanParts) {
  expect_all_parts_done(*make_world_communicator(), {1});
  expect_all_parts_done(*make_world_communicator(), {1, 1});
  expect_all_parts_done(*make_world_communicator(), {});
}

TEST(MapParts, DealsLargestFirstToTheLeastLoaded) {
  // By hand, largest first: 4 (part 1), 3 (part 2), 2 (part 3), 1 (part 0).
  const std::map<int, std::vector<int>> by_hand = {{1, {0, 0, 0, 0}}, {2, {0, 0, 1, 1}}, {4, {3, 0, 1, 2}}};
  for (const auto& [ranks, rank_of] : by_hand) EXPECT_EQ(deal_parts({1, 4, 3, 2}, ranks), rank_of);
  // What ranks draw from is in the same order, those of equal work as they come.
  std::vector<Bundle> bundles = bundles_of({1, 4, 3, 4}, {0, 0, 0, 0}, {});
  largest_first(bundles);
  std::vector<std::size_t> order;
  for (const Bundle& bundle : bundles) order.push_back(bundle.parts.front());
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 2, 0}));
}

TEST(MapParts, RanksWithCommonMemoryDoNotWaitWhilePartsAreLeft) {
  const auto world = make_world_communicator();
  if (world->size() != 2) return;
  for (int time = 0; time < 3; ++time) {
    const auto outcomes = map_parts(*world, std::vector<double>(9, 1.0), [](std::size_t part) {
      if (part == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return result_of(part);
    });
    const auto of_sleeper =
        std::ranges::count(outcomes, outcomes.front().rank, [](const PartOutcome& o) { return o.rank; });
    EXPECT_LT(of_sleeper, 4) << "dealt before, one rank has 5 parts and one 4";
  }
}

TEST(MapParts, AreRecordedAsDealt) {
  const auto local = make_local_communicator();
  const RecordingCommunicator recorder(*local);
  map_parts(MeteredCommunicator(recorder), {1, 4, 3}, result_of);
  recorder.broadcast(Bytes(7), 0);
  const std::vector<WorkStep> steps = recorder.steps();
  ASSERT_EQ(steps.size(), 5U);
  ASSERT_EQ(steps[0].parts.size(), 3U);
  EXPECT_EQ(steps[0].parts[1].estimate, 4);
  EXPECT_EQ(steps[1].talk, WorkStep::Talk::reduce);  // the barrier of what measures
  EXPECT_EQ(steps[2].talk, WorkStep::Talk::gather);
  EXPECT_GE(steps[2].bytes, 3 * sizeof(double) + 33);  // 1, 11 and 21 bytes of results
  EXPECT_EQ(steps[3].talk, WorkStep::Talk::broadcast);
  EXPECT_EQ(steps[3].bytes, 7U);
  EXPECT_EQ(steps[4].talk, WorkStep::Talk::none);
  EXPECT_EQ(deal_parts({1, 4, 3, 2}, 2), (std::vector<int>{0, 0, 1, 1}));
}

TEST(MapParts, KinStayTogetherWhereAllRanksHaveWork) {
  // Kin 7 is parts 0, 2 and 5 with work 3 + 3 + 0, kin 1 parts 1 and 4 with 2 + 3, kin 4 part 3 with 0.
  const std::vector<double> work{3, 2, 3, 0, 3, 0};
  const std::vector<std::size_t> kin{7, 1, 7, 4, 1, 7};
  EXPECT_EQ(deal_parts(work, 1, kin), (std::vector<int>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(deal_parts(work, 2, kin), (std::vector<int>{0, 1, 0, 1, 1, 0}));  // 6, then 5, then 0
  EXPECT_EQ(deal_parts(work, 3, kin), deal_parts(work, 3));                   // two have work
  EXPECT_EQ(deal_parts({}, 1, {}), std::vector<int>());

  const auto world = make_world_communicator();
  const std::vector<int> rank_of = deal_parts(work, world->size(), kin);
  std::vector<std::size_t> in_turn;
  const auto outcomes = map_parts(
      *world, work,
      [&](std::size_t part) {
        in_turn.push_back(part);
        return result_of(part);
      },
      kin);
  for (std::size_t part = 0; part < work.size(); ++part) EXPECT_EQ(outcomes[part].value, result_of(part));
  for (const Bundle& bundle : bundles_of(work, rank_of, kin)) {
    for (const std::size_t part : bundle.parts)
      EXPECT_EQ(outcomes[part].rank, outcomes[bundle.parts.front()].rank);
  }
  if (world->size() == 1) {
    EXPECT_EQ(in_turn, (std::vector<std::size_t>{0, 2, 5, 1, 4, 3}));
  }
}

TEST(MapParts, PartsWithoutWorkAreDealtInTurn) {
  EXPECT_EQ(deal_parts(std::vector<double>(8, 0.0), 3), (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}));
  expect_all_parts_done(*make_world_communicator(), std::vector<double>(8, 0.0));
}

TEST(MapParts, FailuresAreDataAndAlikeOnAllRanks) {
  const auto world = make_world_communicator();
  const auto outcomes = map_parts(*world, std::vector<double>(6, 1.0), [](std::size_t part) -> Bytes {
    if (part == 2) throw Error(ExitCode::unavailable, "part 2 is infeasible");
    if (part == 3) throw std::out_of_range("a slip");
    if (part == 4) throw 17;
    return result_of(part);
  });
  std::string seen;
  for (const PartOutcome& outcome : outcomes) {
    seen += outcome.error ? std::to_string(static_cast<int>(outcome.error->code())) + outcome.error->what()
                          : to_text(outcome.value);
    seen += '\n';
  }
  EXPECT_EQ(outcomes[1].value, result_of(1));
  EXPECT_EQ(outcomes[5].value, result_of(5));
  ASSERT_TRUE(outcomes[2].error && outcomes[3].error && outcomes[4].error);
  EXPECT_EQ(outcomes[2].error->code(), ExitCode::unavailable);
  EXPECT_STREQ(outcomes[2].error->what(), "part 2 is infeasible");
  EXPECT_EQ(outcomes[3].error->code(), ExitCode::internal);
  EXPECT_NE(std::string(outcomes[3].error->what()).find("a slip"), std::string::npos);
  EXPECT_EQ(outcomes[4].error->code(), ExitCode::internal);
  for (const Bytes& other : world->all_gather(to_bytes(seen))) EXPECT_EQ(to_text(other), seen);
}

}  // namespace
}  // namespace rondo::map_parts_test
