// The schedule does not depend on the number of ranks: together the ranks find what each finds alone.

#include "rondo/pipeline/synthesize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "of_root.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/local_search/improvement.hpp"
#include "topologies.hpp"

namespace rondo::synthesize_test {
namespace {

using Fabric = std::shared_ptr<const Topology>;

Fabric torus() {
  return generated("torus", {{"dims", "3x3"}});
}

std::string text_of(const SynthesisResult& result) {
  std::ostringstream text;
  text << result.engine << ", seed " << result.seed << "\n";
  for (const char* metric :
       {"improvement_tries", "improvement_successes", "improvement_merged", "chunks_before_improvement"}) {
    const auto known = result.metrics.find(metric);
    text << metric << " " << (known == result.metrics.end() ? -1 : known->second) << "\n";
  }
  return text.str() + text_of(result.proven.schedule);
}

/// What all ranks together find, on each of them the same as what the root finds alone.
SynthesisResult same_on_any_ranks(const Problem& problem) {
  const auto world = make_world_communicator();
  SynthesisResult together = synthesize(problem, {*world});
  EXPECT_EQ(text_of(together),
            of_root(*world, [&] { return text_of(synthesize(problem, {*make_local_communicator()})); }));
  return together;
}

void expect_same_in_two_chunks(const Fabric& topology, Collective collective, const std::string& engine) {
  SolveOptions options;
  options.engine = engine;
  options.chunks = 2;
  same_on_any_ranks({topology, make_demand(collective, 90'000, topology->num_gpus(), 1), options});
}

TEST(Synthesize, ListAllGather) {
  expect_same_in_two_chunks(torus(), Collective::allgather, "list");
}
TEST(Synthesize, AutoAllGather) {
  expect_same_in_two_chunks(torus(), Collective::allgather, "auto");
}
TEST(Synthesize, AutoAllGatherOnADamagedFabric) {
  expect_same_in_two_chunks(damaged(*torus(), 0.1, 1), Collective::allgather, "auto");
}
TEST(Synthesize, FromAKeptSchedule) {
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    const Demand demand = make_demand(collective, 90'000, torus()->num_gpus(), 1);
    SolveOptions options;
    options.improve_work = 2e5;
    const ProvenSchedule kept = synthesize({torus(), demand, options}, {*make_world_communicator()}).proven;
    options.from = "kept";
    same_on_any_ranks(
        {damaged(*torus(), 0.1, 1), demand, options, std::make_shared<const ProvenSchedule>(kept)});
  }
}
TEST(Synthesize, AllGatherOfEachEngine) {
  for (const std::string engine : {"queue", "trees"}) {
    SCOPED_TRACE(engine);
    expect_same_in_two_chunks(torus(), Collective::allgather, engine);
    expect_same_in_two_chunks(generated("star", {{"chassis", "2"}, {"gpus", "3"}}), Collective::allgather,
                              engine);
  }
}
TEST(Synthesize, AllReduceOfEachEngine) {
  const Fabric chassis = generated("rails", {{"boxes", "2"}, {"gpus", "2"}});
  for (const std::string engine :
       {"auto", "ring", "tree", "direct", "recursive", "bruck", "hierarchical", "exchange"}) {
    SCOPED_TRACE(engine);
    SolveOptions options;
    options.engine = engine;
    options.gap = 0.5;
    same_on_any_ranks({chassis, make_demand(Collective::allreduce, 4096, 4, 1), options});
  }
}
TEST(Synthesize, FlowAllToAll) {
  expect_same_in_two_chunks(torus(), Collective::alltoall, "flow");
}
TEST(Synthesize, AutoAllToAll) {
  expect_same_in_two_chunks(torus(), Collective::alltoall, "auto");
}

/// A third of the data belongs to another tenant, who begins later and counts more; or is late.
Demand changed(const Fabric& topology, Collective collective, bool to_tenants) {
  const Demand named = make_demand(collective, 90'000, topology->num_gpus(), 1);
  std::vector<Contribution> parts = named.contributions();
  double bytes = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bytes += parts[i].bytes;
    if (i % 3 != 0) continue;
    parts[i].ready_us = 2;
    if (to_tenants) {
      parts[i].tenant = 1;
      parts[i].priority = 4;
    }
  }
  return Demand(Collective::custom, bytes, topology->num_gpus(), std::move(parts), 1);
}

TEST(Synthesize, ForSeveralTenants) {
  const Fabric mesh = generated("mesh", {{"dims", "2x3"}});
  SolveOptions options;
  options.chunks = 2;
  options.improve_work = 2e4;
  for (const Objective objective : {Objective::finish, Objective::weighted}) {
    options.objective = objective;
    const SynthesisResult result =
        same_on_any_ranks({mesh, changed(mesh, Collective::alltoall, true), options});
    EXPECT_EQ(result.sharing->tenants.size(), 2U);
  }
}

TEST(Synthesize, ForSeveralFabrics) {
  TopologyData slow = torus()->data();
  slow.links.front().bandwidth_GBps /= 4;
  Scenarios scenarios;
  scenarios.all.push_back({"slow", std::make_shared<const Topology>(std::move(slow))});
  SolveOptions options;
  options.chunks = 2;
  options.improve_work = 1e4;
  Problem problem{torus(), make_demand(Collective::alltoall, 90'000, torus()->num_gpus(), 1), options};
  problem.scenarios = std::make_shared<const Scenarios>(scenarios);
  const SynthesisResult result = same_on_any_ranks(problem);
  EXPECT_LE(result.robustness->figure_us(), result.robustness->own_us);
}

TEST(Synthesize, OverRelaysWithLittleMemory) {
  const Demand demand = make_demand(Collective::alltoall, 90'000, torus()->num_gpus(), 1, GpuId{0},
                                    {.group = {GpuId{0}, GpuId{4}, GpuId{8}}});
  SolveOptions options;
  options.chunks = 2;
  options.improve_work = 1e4;
  const double bytes = demand.contributions().front().bytes / options.chunks;
  const auto little = std::make_shared<const Topology>(with_relay_memory(*torus(), bytes));
  const SynthesisResult result = same_on_any_ranks({little, demand, options});
  EXPECT_EQ(std::ranges::max(peak_relay_bytes(*little, result.proven.demand, result.proven.schedule.sends)),
            bytes);
}

TEST(Synthesize, SumsThatComeLate) {
  SolveOptions options;
  options.improve_work = 1e5;
  same_on_any_ranks({torus(), changed(torus(), Collective::reduce_scatter, false), options});
}

/// Any number of chunks, so that local search may split them and restarts may have more.
SynthesisResult in_any_chunks(const Fabric& topology, double bytes, const std::string& engine) {
  SolveOptions options;
  options.engine = engine;
  options.min_chunk_bytes = 1024;
  return same_on_any_ranks(
      {topology, make_demand(Collective::broadcast, bytes, topology->num_gpus(), 1), options});
}

/// The portfolio's winner keeps its name in `candidates`; a restart puts its own into the result.
void expect_a_restart_won(const SynthesisResult& result) {
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_NE(result.engine, result.candidates.front().engine);
  EXPECT_GT(result.proven.demand.chunks_per_contribution(), result.metrics.at("chunks_before_improvement"));
  EXPECT_LT(result.proven.schedule.finish_us, result.metrics.at("finish_before_improvement_us"));
}

TEST(Synthesize, ARestartOfAnotherPolicyWins) {
  const SynthesisResult small = in_any_chunks(generated("mesh", {{"dims", "2x3"}}), 20e3, "list");
  expect_a_restart_won(small);
  EXPECT_EQ(small.proven.demand.chunks_per_contribution(), 18);  // no power of two
  expect_a_restart_won(in_any_chunks(generated("mesh", {{"dims", "2x4"}}), 1e6, "list"));
}

TEST(Synthesize, ManyStreamsAreMerged) {
  SolveOptions options;
  options.engine = "list";
  options.streams = 64;
  const Fabric star = damaged(*generated("star", {{"chassis", "3"}, {"gpus", "3"}}), 0.1, 1);
  const SynthesisResult result =
      same_on_any_ranks({star, make_demand(Collective::allgather, 90'000, 9, 1), options});
  EXPECT_GT(result.metrics.at("improvement_merged"), 0);
}

TEST(Synthesize, PlansInMoreChunksWin) {
  const Fabric rails = generated("rails", {{"boxes", "2"}, {"gpus", "3"}});
  for (const std::string engine : {"list", "auto"}) {
    SCOPED_TRACE(engine);
    const SynthesisResult result = in_any_chunks(rails, 20e3, engine);
    EXPECT_EQ(result.metrics.at("chunks_before_improvement"), 2);
    EXPECT_GE(result.proven.demand.chunks_per_contribution(), 8);
    EXPECT_GT(result.metrics.at("improvement_successes"), 0);
    EXPECT_EQ(result.engine.substr(0, 5), "list/");
    EXPECT_LT(result.proven.schedule.finish_us, result.metrics.at("finish_before_improvement_us"));
  }
}

/// Broadcast on a mesh from one start, without restarts.
class MeshImprovement : public testing::Test {
 protected:
  MeshImprovement() {
    task.starts = {{1, start.finish_us, [this] { return start; }}};
    task.most_chunks = 8;
    task.work_limit = 1e5;
    task.stop = [](double) { return false; };
  }
  const Fabric mesh = generated("mesh", {{"dims", "3x3"}});
  const Demand demand = make_demand(Collective::broadcast, 1e6, mesh->num_gpus(), 1);
  const Schedule start = *prepare_list({mesh, demand}, {}, {})(demand, {}).schedule;
  ImprovementTask task{*mesh, demand, 1};
};

/// What has more chunks than the start has gone through the levels between.
TEST_F(MeshImprovement, SplitsChunksLevelByLevel) {
  const Improvement together = improve(task, *make_world_communicator());
  const Improvement alone = improve(task, *make_local_communicator());
  ASSERT_TRUE(together.schedule && alone.schedule);
  EXPECT_EQ(together.chunks, 8);
  EXPECT_EQ(together.successes, alone.successes);
  EXPECT_EQ(together.tries, alone.tries);
  EXPECT_LT(together.schedule->finish_us, start.finish_us);
  EXPECT_EQ(text_of(*together.schedule), text_of(*alone.schedule));
}

/// After twenty steps the last rank has no time left: all stop there, with the same schedule.
TEST_F(MeshImprovement, StopsOnAllRanksWhereOneIsLate) {
  const auto world = make_world_communicator();
  task.time_limit_s = 1;
  int steps = 0;
  task.deadline = [&] {
    const bool is_late = ++steps > 20 && world->rank() + 1 == world->size();
    return Deadline(SolveLimits{.time_limit_s = is_late ? 0.0 : -1.0});
  };
  const Improvement found = improve(task, *world);
  EXPECT_TRUE(found.out_of_time);
  EXPECT_EQ(steps, 21);
  ASSERT_TRUE(found.schedule);
  EXPECT_LT(found.schedule->finish_us, start.finish_us);
  const double finish_us = found.schedule->finish_us;
  EXPECT_EQ(world->max(finish_us), finish_us);
  EXPECT_EQ(world->max(-finish_us), -finish_us);
  const Demand split = demand.with_chunks(found.chunks);
  EXPECT_TRUE(replay(*mesh, split, found.schedule->sends).valid());
}

}  // namespace
}  // namespace rondo::synthesize_test
