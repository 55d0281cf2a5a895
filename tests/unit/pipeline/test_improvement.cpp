#include <gtest/gtest.h>

#include <algorithm>

#include "rondo/core/hops.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/improvement.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_improvement {
namespace {

Demand allgather(const Topology& topology, int chunks = 1) {
  const auto gpus = static_cast<double>(topology.num_gpus());
  return make_demand(Collective::allgather, gpus * chunks * 1e6, topology.num_gpus(), chunks);
}

/// With one start.
ImprovementTask task_of(const Topology& topology, const Demand& demand, double bound_us,
                        const Schedule& schedule) {
  ImprovementTask task{topology, demand, bound_us};
  task.starts = {{demand.chunks_per_contribution(), schedule.finish_us, [schedule] { return schedule; }}};
  task.most_chunks = demand.chunks_per_contribution();
  task.work_limit = 1e5;
  task.stop = [](double) { return false; };
  return task;
}

Schedule one_after_another(const std::shared_ptr<const Topology>& ring, const Demand& demand) {
  const EngineResult quick = prepare_list({ring, demand}, {}, {})(demand, {});
  Schedule slow;
  std::vector<Send> by_start = quick.schedule->sends;
  std::ranges::stable_sort(by_start, {}, &Send::start_us);
  for (const Send& send : by_start) {
    const Hop hop = make_hop(*ring, std::vector{send.link});
    append_sends(*ring, hop, send.chunk, demand.bytes(send.chunk), slow.finish_us, slow.sends);
    slow.finish_us = slow.sends.back().arrival_us;
  }
  return slow;
}

TEST(Improvement, MendsAScheduleThatSendsOneAfterAnother) {
  // Twelve transfers of 1001 us one after another, where each GPU might send all the time: three steps.
  const auto ring = one_way_ring(4);
  const Demand demand = allgather(*ring);
  const Schedule slow = one_after_another(ring, demand);
  EXPECT_DOUBLE_EQ(slow.finish_us, 12012);
  const Improvement result = improve(task_of(*ring, demand, 3003, slow), *make_local_communicator());
  ASSERT_TRUE(result.schedule);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 3003);
  const ReplayResult replayed = replay(*ring, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  EXPECT_DOUBLE_EQ(replayed.finish_us, 3003);
}

TEST(Improvement, SplitsChunksWhereThatEndsEarlier) {
  // A line of three: whole chunks pass the middle one after the other, halves on each other's heels. GPU 2
  // has to get 2000 us of data over its only link; the first of it from GPU 1.
  const auto line =
      fabric({gpu(), gpu(), gpu()}, {link(0, 1, 1, 0), link(1, 0, 1, 0), link(1, 2, 1, 0), link(2, 1, 1, 0)});
  // Broadcast from 0: one chunk takes 2000 us, two 1500, four 1250.
  const Demand demand = make_demand(Collective::broadcast, 1e6, 3, 1);
  const Schedule whole = *prepare_list({line, demand}, {}, {})(demand, {}).schedule;
  EXPECT_DOUBLE_EQ(whole.finish_us, 2000);
  ImprovementTask task = task_of(*line, demand, 1000, whole);
  task.most_chunks = 4;
  const Improvement result = improve(task, *make_local_communicator());
  ASSERT_TRUE(result.schedule);
  EXPECT_EQ(result.chunks, 4);
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 1250);
  const ReplayResult replayed = replay(*line, demand.with_chunks(4), result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
}

TEST(Improvement, RestartsInMoreChunks) {
  // A broadcast around a ring of four in one chunk takes 3003 us. Variant 2 gives two chunks, variant 20
  // would give four. Plans are not split here.
  const auto ring = one_way_ring(4);
  const Demand demand = make_demand(Collective::broadcast, 1e6, 4, 1);
  const PreparedEngine list = prepare_list({ring, demand}, {}, {});
  const Schedule whole = *list(demand, {}).schedule;
  EXPECT_DOUBLE_EQ(whole.finish_us, 3003);
  ImprovementTask task = task_of(*ring, demand, 1000, whole);
  task.restart_chunks = {2, 4};
  std::vector<std::pair<int, std::size_t>> asked;
  task.restart = [&](int chunks, std::size_t variant, RestartLimits) -> std::optional<Schedule> {
    asked.emplace_back(chunks, variant);
    if (variant != (chunks == 2 ? 2U : 20U)) return std::nullopt;
    return list(demand.with_chunks(chunks), {}).schedule;
  };
  const Improvement result = improve(task, *make_local_communicator());
  ASSERT_TRUE(result.schedule);
  EXPECT_EQ(result.chunks, 2);  // variant 20 was not of the better half
  EXPECT_DOUBLE_EQ(result.schedule->finish_us, 2003);
  EXPECT_EQ(asked.size(), 48U);
  EXPECT_EQ(asked[32], (std::pair<int, std::size_t>{4, 2}));
  const ReplayResult replayed = replay(*ring, demand.with_chunks(2), result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
}

TEST(Improvement, ASignalInTheFirstRestartRoundEndsTheSearch) {
  const auto ring = one_way_ring(4);
  const Demand demand = make_demand(Collective::broadcast, 1e6, 4, 1);
  const PreparedEngine list = prepare_list({ring, demand}, {}, {});
  ImprovementTask task = task_of(*ring, demand, 1000, *list(demand, {}).schedule);
  task.restart_chunks = {2, 4};
  bool is_interrupted = false;
  task.restart = [&](int, std::size_t, RestartLimits) -> std::optional<Schedule> {
    is_interrupted = true;
    return std::nullopt;
  };
  task.interrupted = [&] { return is_interrupted; };
  task.stop = [&](double) { return is_interrupted; };
  const Improvement result = improve(task, *make_local_communicator());
  EXPECT_TRUE(is_interrupted);
  EXPECT_FALSE(result.schedule);
}

TEST(Improvement, LeavesALevelThatCannotGetBetter) {
  const auto ring = one_way_ring(4);
  const Demand demand = allgather(*ring);
  ImprovementTask task = task_of(*ring, demand, 3000, one_after_another(ring, demand));
  task.least_us = [](int) { return 12012.0; };
  EXPECT_EQ(improve(task, *make_local_communicator()).tries, 0U);
}

TEST(Improvement, StopsWhereAStepHasNoTime) {
  const auto ring = one_way_ring(4);
  const Demand demand = allgather(*ring);
  ImprovementTask task = task_of(*ring, demand, 3003, one_after_another(ring, demand));
  task.time_limit_s = 1;
  const Deadline over(SolveLimits{.time_limit_s = 0});
  int steps = 0;
  task.deadline = [&] { return ++steps > 1 ? over : Deadline(); };
  const Improvement in_a_round = improve(task, *make_local_communicator());
  EXPECT_TRUE(in_a_round.out_of_time);
  EXPECT_EQ(steps, 2);
  ASSERT_TRUE(in_a_round.schedule);  // the start, justified
  EXPECT_LT(in_a_round.schedule->finish_us, 12012);
  steps = 1;
  const Improvement before_all = improve(task, *make_local_communicator());
  EXPECT_TRUE(before_all.out_of_time);
  EXPECT_FALSE(before_all.schedule);
}

TEST(Improvement, StopsWhenToldTo) {
  const auto ring = one_way_ring(3);
  const Demand demand = allgather(*ring);
  ImprovementTask task = task_of(*ring, demand, 2002, one_after_another(ring, demand));
  task.stop = [](double) { return true; };
  EXPECT_EQ(improve(task, *make_local_communicator()).tries, 0U);
}

// A fat tree's links are full, and replanting ends early there: moves may go on for as long as they gain.
TEST(Improvement, EndsWhereReplantingTakesLongAndNothingIsGained) {
  const auto tree = std::make_shared<const Topology>(generate_topology(
      "fat_tree", {{"leaves", "4"}, {"gpus", "4"}, {"spines", "3"}, {"multicast", "false"}}));
  const Demand demand = allgather(*tree, 8);
  const Schedule start = *prepare_list({tree, demand}, {}, {})(demand, {}).schedule;
  ImprovementTask task = task_of(*tree, demand, 1, start);
  task.work_limit = 1e6;
  const Improvement whole = improve(task, *make_local_communicator());
  task.gainless_work = 1e5;
  const Improvement shorter = improve(task, *make_local_communicator());
  EXPECT_LT(shorter.tries, whole.tries);
  EXPECT_FALSE(shorter.out_of_work);
  // Small rings are never that slow.
  const auto ring = one_way_ring(4);
  const Demand few = allgather(*ring);
  ImprovementTask quick = task_of(*ring, few, 1, one_after_another(ring, few));
  const Improvement all = improve(quick, *make_local_communicator());
  quick.gainless_work = 0;
  EXPECT_EQ(improve(quick, *make_local_communicator()).tries, all.tries);
}

class ImprovementStreams : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Few, ImprovementStreams, testing::Values(8));
INSTANTIATE_TEST_SUITE_P(Many, ImprovementStreams, testing::Values(64));

TEST_P(ImprovementStreams, ResumesFromAnyOfItsStates) {
  const auto star = damaged(generate_topology("star", {{"chassis", "3"}, {"gpus", "3"}}), 0.1, 1);
  const Demand demand = allgather(*star, 2);
  const Schedule start = *prepare_list({star, demand}, {}, {})(demand, {}).schedule;
  ImprovementTask task = task_of(*star, demand, 1, start);
  task.most_chunks = 4;
  task.most_streams = GetParam();
  task.work_limit = GetParam() > 8 ? 2e5 : 1.6e5;  // enough for rounds of that many
  task.restart_chunks = {2, 4};
  const PreparedEngine list = prepare_list({star, demand}, {}, {});
  task.restart = [&](int chunks, std::size_t variant, RestartLimits) {
    return list(demand.with_chunks(chunks), {.seed = variant}).schedule;
  };
  std::vector<Bytes> states;
  task.keep = [&](const std::function<Bytes()>& state, bool) { states.push_back(state()); };
  const Improvement whole = improve(task, *make_local_communicator());
  ASSERT_TRUE(whole.schedule);
  ASSERT_GT(states.size(), 8U);
  EXPECT_EQ(whole.merged > 0, GetParam() > 8);
  task.keep = [](const auto&, bool) {};
  for (const std::size_t i : {std::size_t{0}, states.size() / 2, states.size() - 2}) {
    const Improvement rest = improve(task, *make_local_communicator(), states[i]);
    EXPECT_EQ(rest.tries, whole.tries);
    EXPECT_EQ(rest.merged, whole.merged);
    EXPECT_EQ(rest.chunks, whole.chunks);
    ASSERT_TRUE(rest.schedule);
    EXPECT_EQ(rest.schedule->finish_us, whole.schedule->finish_us);
    expect_same_sends(*rest.schedule, *whole.schedule);
  }
}

TEST(Improvement, OfTwoStartsTheEarlierGoesOnAsIfAlone) {
  // Without switches, where replanting does not come first.
  const auto torus = damaged(generate_topology("torus", {{"dims", "3x3"}}), 0.1, 1);
  const Demand demand = allgather(*torus, 4);
  const auto start_in = [&](int chunks) {
    const Demand split = demand.with_chunks(chunks);
    const Schedule schedule = *prepare_list({torus, split}, {}, {})(split, {}).schedule;
    return ImprovementTask::Start{chunks, schedule.finish_us, [schedule] { return schedule; }};
  };
  ImprovementTask task = task_of(*torus, demand, 1, start_in(4).schedule());
  task.work_limit = 4e4;  // too little for a thousand tries
  const Improvement alone = improve(task, *make_local_communicator());
  ASSERT_TRUE(alone.schedule);
  task.starts = {start_in(1), start_in(4)};
  ASSERT_GT(task.starts[0].finish_us, task.starts[1].finish_us);
  std::vector<Bytes> states;
  task.keep = [&](const std::function<Bytes()>& state, bool) { states.push_back(state()); };
  const Improvement raced = improve(task, *make_local_communicator());
  ASSERT_TRUE(raced.schedule);
  EXPECT_GT(raced.tries, alone.tries);  // those from one chunk, too
  EXPECT_EQ(raced.chunks, 4);
  expect_same_sends(*raced.schedule, *alone.schedule);
  task.keep = [](const auto&, bool) {};
  for (std::size_t i = 0; i < states.size(); i += 4) {
    const Improvement rest = improve(task, *make_local_communicator(), states[i]);
    EXPECT_EQ(rest.tries, raced.tries);
    ASSERT_TRUE(rest.schedule);
    expect_same_sends(*rest.schedule, *raced.schedule);
  }
}

}  // namespace
}  // namespace rondo::test_improvement
