#include <gtest/gtest.h>

#include <algorithm>

#include "both_ways.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/verify.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::test_both_ways {
namespace {

constexpr double kBytes = 1e4;

Problem on_hypercube(Collective collective) {
  const auto cube = generated("hypercube", {{"dimensions", "3"}});
  return {cube, make_demand(collective, kBytes, cube->num_gpus(), 1)};
}

SynthesisResult solved(const Problem& problem, StateStore kept = {}) {
  const RunStore store{.checkpoints = std::make_shared<Checkpoints>(std::move(kept), 0)};
  return synthesize(problem, {.communicator = *make_local_communicator(), .store = store});
}

TEST(BothWays, ScatterEndsAsGatherDoes) {
  const SynthesisResult gathered = solved(on_hypercube(Collective::gather));
  const SynthesisResult scattered = solved(on_hypercube(Collective::scatter));
  EXPECT_DOUBLE_EQ(scattered.proven.schedule.finish_us, gathered.proven.schedule.finish_us);
  EXPECT_EQ(std::ranges::count(scattered.remarks, "found on the transposed topology and run backwards"), 1);
  EXPECT_TRUE(
      replay(scattered.proven.topology, scattered.proven.demand, scattered.proven.schedule.sends).valid());
  EXPECT_EQ(scattered.proven.demand.collective(), Collective::scatter);
  EXPECT_DOUBLE_EQ(scattered.proven.lower_bound->us,
                   sound_bound_of(scattered.proven.topology, scattered.proven.demand,
                                  scattered.proven.lower_bound->certificate));
}

TEST(BothWays, ResumesInEitherSearchToTheSameSchedule) {
  std::vector<std::pair<std::string, Bytes>> states;
  const SynthesisResult whole = solved(
      on_hypercube(Collective::scatter),
      {.keep = [&](const std::string& name, const Bytes& state) { states.emplace_back(name, state); }});
  const auto turned =
      std::ranges::find_if(states, [](const auto& state) { return state.first.starts_with("backwards-"); });
  ASSERT_NE(turned, states.begin());
  ASSERT_NE(turned, states.end());
  for (const auto end : {states.begin() + 1, turned, turned + 1, states.end() - 1}) {
    const SynthesisResult resumed =
        solved(on_hypercube(Collective::scatter), {.newest = [&](const std::string& name) {
                 std::optional<Bytes> newest;
                 for (auto state = states.begin(); state != end; ++state) {
                   if (state->first == name) newest = state->second;
                 }
                 return newest;
               }});
    expect_same_sends(resumed.proven.schedule, whole.proven.schedule);
  }
}

TEST(BothWays, OnlyWhereBackwardsIsTheSame) {
  EXPECT_TRUE(may_be_turned(on_hypercube(Collective::scatter)));
  EXPECT_TRUE(may_be_turned(on_hypercube(Collective::gather)));
  EXPECT_FALSE(may_be_turned(on_hypercube(Collective::alltoall)));
  EXPECT_FALSE(may_be_turned(on_hypercube(Collective::broadcast)));
  EXPECT_FALSE(may_be_turned(on_hypercube(Collective::reduce)));
  Problem by_list = on_hypercube(Collective::scatter);
  by_list.options.engine = "list";
  EXPECT_FALSE(may_be_turned(by_list));
  Problem late = on_hypercube(Collective::scatter);
  std::vector<Contribution> data = late.demand.contributions();
  data.front().ready_us = 1;
  late.demand = Demand(Collective::custom, kBytes, late.demand.num_gpus(), std::move(data), 1);
  EXPECT_FALSE(may_be_turned(late));
}

}  // namespace
}  // namespace rondo::test_both_ways
