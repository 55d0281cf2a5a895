// On three and on eight ranks as on one: AllReduce of the whole search, and local search that is stopped at
// any synchronisation of its streams and goes on from there.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::any_ranks_test {
namespace {

TEST(AnyRanks, AllReduceIsTheSame) {
  const auto rails = generated("rails", {{"boxes", "2"}, {"gpus", "2"}});
  SolveOptions options;
  options.improve_work = 1e4;
  options.chunks = 4;
  options.gap = 0.2;
  const Problem problem{rails, make_demand(Collective::allreduce, 4e6, 4, 1), options};
  const SynthesisResult together = synthesize(problem, {*make_world_communicator()});
  const SynthesisResult alone = synthesize(problem, {*make_local_communicator()});
  EXPECT_EQ(together.engine, alone.engine);
  expect_same_sends(together.proven.schedule, alone.proven.schedule);
}

TEST(AnyRanks, LocalSearchGoesOnFromAnySynchronisation) {
  const auto star = damaged(generate_topology("star", {{"chassis", "3"}, {"gpus", "3"}}), 0.1, 1);
  const Demand demand = make_demand(Collective::allgather, 18e6, star->num_gpus(), 2);
  const Schedule start = *prepare_list({star, demand}, {}, {})(demand, {}).schedule;
  ImprovementTask task{*star, demand, 1};
  task.starts = {{2, start.finish_us, [&] { return start; }}};
  task.most_chunks = 4;
  task.most_streams = 64;
  task.work_limit = 2e5;
  task.stop = [](double) { return false; };
  std::vector<Bytes> states;
  task.keep = [&](const std::function<Bytes()>& state, bool ends) {
    if (!ends) states.push_back(state());
  };
  const Improvement whole = improve(task, *make_local_communicator());
  ASSERT_TRUE(whole.schedule);
  ASSERT_GE(states.size(), 8U);
  ASSERT_GT(whole.merged, 0U) << "no round has merged what several streams found";
  task.keep = [](const auto&, bool) {};
  const auto world = make_world_communicator();
  // The later ones have less left to do.
  for (std::size_t i = 0; i < states.size(); i += std::max<std::size_t>(1, states.size() / 4)) {
    SCOPED_TRACE("after synchronisation " + std::to_string(i));
    const Improvement resumed = improve(task, *world, states[i]);
    ASSERT_TRUE(resumed.schedule);
    EXPECT_EQ(resumed.tries, whole.tries);
    EXPECT_EQ(resumed.merged, whole.merged);
    EXPECT_EQ(resumed.chunks, whole.chunks);
    expect_same_sends(*resumed.schedule, *whole.schedule);
  }
}

}  // namespace
}  // namespace rondo::any_ranks_test
