#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/local_search/rerouting.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

/// Schedules that were made before, on other figures.
namespace rondo::test_kept {
namespace {

using Fabric = std::shared_ptr<const Topology>;

Problem problem_of(const Fabric& topology, Collective collective, double bytes, SolveOptions options = {}) {
  options.improve_work = 1e5;
  return {topology, make_demand(collective, bytes, topology->num_gpus(), 1), std::move(options)};
}

std::shared_ptr<const ProvenSchedule> solved(const Problem& problem) {
  return std::make_shared<const ProvenSchedule>(synthesize(problem, {*make_local_communicator()}).proven);
}

SynthesisResult solve_from(Problem problem, std::shared_ptr<const ProvenSchedule> start,
                           Checkpoints checkpoints = Checkpoints()) {
  problem.start = std::move(start);
  problem.options.from = "kept";
  const RunStore store{.checkpoints = std::make_shared<Checkpoints>(std::move(checkpoints))};
  SynthesisResult result = synthesize(problem, {.communicator = *make_local_communicator(), .store = store});
  verify(result.proven);
  return result;
}

/// Both ways round a ring of three, 1 GB/s, 1 us; `gone`: links that are left out.
Fabric ring_of_three(const std::vector<std::pair<int, int>>& gone = {}) {
  std::vector<Link> links;
  for (const auto& [src, dst] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 0}, {1, 0}, {2, 1}, {0, 2}}) {
    if (std::ranges::find(gone, std::pair(src, dst)) == gone.end()) links.push_back(link(src, dst));
  }
  return fabric(std::vector<Node>(3), links);
}

/// 1 MB from GPU 0 to GPU 1 over their link.
ProvenSchedule one_send(const Fabric& ring) {
  Demand demand(Collective::custom, kMB, 3,
                {Contribution{.origin = GpuId{0}, .bytes = kMB, .destinations = {GpuId{1}}}}, 1);
  return {*ring, std::move(demand), {{Send{ChunkId{0}, LinkId{0}, 0, 1000, 1001}}, 1001}};
}

double finish_rerouted(const ProvenSchedule& kept, const Topology& topology, double due_scale) {
  PlanSpace space = make_plan_space(topology, kept.demand);
  const auto plan = rerouted(kept, matching_links(kept.topology, topology), space, due_scale);
  if (!plan) return -1;
  const ReplayResult replayed = replay(topology, kept.demand, schedule_of(*plan, space).sends);
  EXPECT_TRUE(replayed.valid()) << replayed.violation.value_or("");
  return replayed.finish_us;
}

TEST(Rerouting, TakesAPathWhereTheLinkIsGone) {
  const ProvenSchedule kept = one_send(ring_of_three());
  EXPECT_DOUBLE_EQ(finish_rerouted(kept, *ring_of_three(), 1), 1001);
  EXPECT_DOUBLE_EQ(finish_rerouted(kept, *ring_of_three({{0, 1}}), 1), 2002);  // over GPU 2
  expect_error(ExitCode::unavailable, {"GPU 1"}, [&] {
    finish_rerouted(kept, *ring_of_three({{0, 1}, {0, 2}}), 1);
  });
}

TEST(Rerouting, KeepsWhatIsInTimeAndMovesWhatIsLate) {
  // 0 sends two chunks to 1, one direct and one over 2; then the direct link is four times slower.
  const Fabric ring = ring_of_three();
  Demand demand(Collective::custom, 2 * kMB, 3,
                {Contribution{.origin = GpuId{0}, .bytes = 2 * kMB, .destinations = {GpuId{1}, GpuId{2}}}},
                2);
  const Send over_two{ChunkId{1}, LinkId{5}, 0, 1000, 1001};
  const ProvenSchedule kept{
      *ring,
      demand,
      {{Send{ChunkId{0}, LinkId{0}, 0, 1000, 1001}, over_two, Send{ChunkId{0}, LinkId{1}, 1001, 2001, 2002},
        Send{ChunkId{1}, LinkId{4}, 1001, 2001, 2002}},
       2002}};
  TopologyData data = ring->data();
  data.links[0].bandwidth_GBps = 0.25;
  const Topology slow(std::move(data));
  // In order 4001 + 1001 us. Late transfers go over GPU 2: 1001 + 1000 + 1001 us for both.
  EXPECT_DOUBLE_EQ(replayed_elsewhere(kept, slow, demand).finish_us, 5002);
  EXPECT_DOUBLE_EQ(finish_rerouted(kept, slow, 1), 3002);
  EXPECT_DOUBLE_EQ(finish_rerouted(kept, slow, 10), 5002);  // nothing is late
}

TEST(Kept, IsTakenAsItIsWhereItIsGoodEnough) {
  const Problem problem = problem_of(generated("ring", {{"gpus", "4"}}), Collective::allgather, 4e6);
  const auto kept = solved(problem);
  const SynthesisResult again = solve_from(problem, kept);
  EXPECT_EQ(again.engine, "kept/order/0");
  expect_same_sends(again.proven.schedule, kept->schedule);
}

TEST(Kept, SumsAreTakenAsTheyAreWhereNearIsEnough) {
  const Fabric slower = fabric(std::vector<Node>(3), [] {
    std::vector<Link> links = ring_of_three()->links();
    links[0].bandwidth_GBps *= 0.9;
    return links;
  }());
  const auto kept = solved(problem_of(ring_of_three(), Collective::allreduce, kMB));
  Problem problem = problem_of(slower, Collective::allreduce, kMB);
  problem.options.enough_gap = 0.5;
  const SynthesisResult near = solve_from(problem, kept);
  EXPECT_EQ(near.engine, "kept/order/0");
  EXPECT_LE(near.gap, 0.5);
  // Without it no more than rounding is enough.
  problem.options.enough_gap.reset();
  const SynthesisResult best = solve_from(problem, kept);
  EXPECT_GT(best.candidates.size(), near.candidates.size());
  EXPECT_LE(best.proven.schedule.finish_us, near.proven.schedule.finish_us * (1 + 1e-9));
}

TEST(Kept, SumsEndNoLaterThanThoseOfANewSearch) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const auto kept = solved(problem_of(ring, Collective::allreduce, kMB));
  const Problem slower = problem_of(damaged(*ring, 0.1, 0), Collective::allreduce, kMB);
  EXPECT_LE(solve_from(slower, kept).proven.schedule.finish_us, solved(slower)->schedule.finish_us);
}

TEST(Kept, NeedsNoOtherEngineWhereReroutingAndLocalSearchAreEnough) {
  const Fabric ring = generated("ring", {{"gpus", "8"}});
  const auto kept = solved(problem_of(ring, Collective::allgather, 1e9));
  Problem problem = problem_of(damaged(*ring, 0.05, 1), Collective::allgather, 1e9);
  problem.options.improve_work = 2.5e6;
  const SynthesisResult adapted = solve_from(problem, kept);
  EXPECT_EQ(adapted.engine, "kept/rerouted/0");
  EXPECT_EQ(adapted.candidates.size(), 1u);
  EXPECT_LT(adapted.gap, 1e-3);
  // Without local search all engines are tried.
  problem.options.improve_work = 0;
  EXPECT_GT(solve_from(problem, kept).candidates.size(), 1u);
}

TEST(Kept, NeedsNoOtherBoundsWhereAKnownOneProvesItNear) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const auto kept = solved(problem_of(ring, Collective::alltoall, 4e6));
  Problem problem = problem_of(damaged(*ring, 0.1, 1), Collective::alltoall, 4e6);
  problem.options.enough_gap = 0.5;
  const auto known = [&](const Certificate& certificate) {
    return std::make_shared<const LowerBound>(
        LowerBound{sound_bound_of(*problem.topology, problem.demand, certificate), certificate});
  };
  problem.known_bound = known(kept->lower_bound->certificate);
  const SynthesisResult near = solve_from(problem, kept);
  EXPECT_EQ(near.proven.lower_bound->us, problem.known_bound->us);
  EXPECT_FALSE(near.wall_parts_s.contains("bounds"));
  EXPECT_LE(near.gap, 0.5);
  // Latency proves next to nothing of so many bytes.
  problem.known_bound = known(LatencyCertificate{GpuId{0}, GpuId{1}});
  const SynthesisResult far = solve_from(problem, kept);
  EXPECT_TRUE(far.wall_parts_s.contains("bounds"));
  EXPECT_GT(far.proven.lower_bound->us, problem.known_bound->us);
  EXPECT_LE(far.gap, 0.5);
}

TEST(Kept, IsAdaptedToOtherFigures) {
  const Fabric torus = generated("torus", {{"dims", "3x3"}});
  const Fabric slower = damaged(*torus, 0.1, 1);
  for (const Collective collective :
       {Collective::allgather, Collective::alltoall, Collective::reduce_scatter, Collective::allreduce}) {
    SCOPED_TRACE(std::string(to_string(collective)));
    const auto kept = solved(problem_of(torus, collective, 9e6));
    const Problem problem = problem_of(slower, collective, 9e6);
    const SynthesisResult adapted = solve_from(problem, kept);
    const SynthesisResult anew = synthesize(problem, {*make_local_communicator()});
    EXPECT_LT(adapted.gap, anew.gap + 0.01);
    const SynthesisResult small = solve_from(problem_of(torus, collective, 9e5), kept);
    EXPECT_LT(small.gap, 0.35);
  }
}

TEST(Kept, MayHaveUnevenCounts) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const CollectiveShape shape{.counts = {8e6, 0, 1e4, 1e6}};
  Problem problem = problem_of(ring, Collective::allgather, 4e6);
  problem.demand = make_demand(Collective::allgather, size_of_counts(Collective::allgather, shape, 4), 4, 1,
                               GpuId{0}, shape);
  const auto kept = solved(problem);
  const SynthesisResult again = solve_from(problem, kept);
  EXPECT_EQ(again.engine.substr(0, 5), "kept/");
  EXPECT_LE(again.proven.schedule.finish_us, kept->schedule.finish_us * (1 + 1e-9));
}

TEST(Kept, GoesOnWithoutLinksThatAreGone) {
  const Fabric torus = generated("torus", {{"dims", "3x3"}});
  TopologyData data = torus->data();
  data.links.erase(data.links.begin());
  const auto rest = std::make_shared<const Topology>(std::move(data));
  for (const Collective collective :
       {Collective::allgather, Collective::alltoall, Collective::reduce_scatter}) {
    SCOPED_TRACE(std::string(to_string(collective)));
    const auto kept = solved(problem_of(torus, collective, 9e6));
    EXPECT_LT(solve_from(problem_of(rest, collective, 9e6), kept).gap, 0.2);
  }
  const auto sums = solved(problem_of(torus, Collective::allreduce, 9e6));
  expect_error(ExitCode::bad_data, {"link 0 ", "without --from"},
               [&] { solve_from(problem_of(rest, Collective::allreduce, 9e6), sums); });
}

TEST(Kept, SumsForOneGpuEachAreTimedAsWhatSpreadsBackwards) {
  const Fabric rails = generated("rails", {{"boxes", "2"}, {"gpus", "4"}});
  const auto sums = solved(problem_of(rails, Collective::reduce_scatter, 256e3));
  const Topology slower = *damaged(*rails, 0.1, 0);
  const Demand demand = sums->demand.with_size(4e6);
  const double spread_us =
      replayed_elsewhere(transposed(*sums), rondo::transposed(slower), rondo::transposed(demand)).finish_us;
  const Schedule there = replayed_elsewhere(*sums, slower, demand);
  EXPECT_DOUBLE_EQ(there.finish_us, spread_us);
  EXPECT_LE(there.finish_us, retimed({*rails, sums->schedule.sends}, slower, demand).finish_us * (1 + 1e-9));
  EXPECT_DOUBLE_EQ(ReplayElsewhere(*sums, slower, demand).guess_us(demand), there.finish_us);
}

TEST(Kept, SaysWhichLinkStaysDown) {
  const Fabric ring = ring_of_three();
  TopologyData data = ring->data();
  data.links[0].bandwidth_steps = {{0, 1}, {500, 0}};
  const ProvenSchedule kept = one_send(ring);
  expect_error(ExitCode::unavailable, {"chunk 0", "link 0 (node 0 -> node 1)", "stays down", "--from"},
               [&] { replayed_elsewhere(kept, Topology(std::move(data)), kept.demand, kAnyConcurrency); });
}

TEST(Kept, IsNotReplayedWithoutItsLinks) {
  const Fabric ring = ring_of_three();
  TopologyData data = ring->data();
  data.links.erase(data.links.begin());
  const ProvenSchedule kept = one_send(ring);
  expect_error(ExitCode::bad_data,
               {"chunk 0", "link 0 (node 0 -> node 1)", "from 0 us", "does not have", "--from"},
               [&] { replayed_elsewhere(kept, Topology(std::move(data)), kept.demand, kAnyConcurrency); });
}

TEST(Kept, HasToMoveTheSameData) {
  const Fabric ring = generated("ring", {{"gpus", "4"}});
  const auto kept = solved(problem_of(ring, Collective::allgather, 4e6));
  expect_error(ExitCode::bad_data, {"chunk ", "destinations"},
               [&] { solve_from(problem_of(ring, Collective::broadcast, 4e6), kept); });
  expect_error(ExitCode::bad_data, {"4 GPUs, not 5"}, [&] {
    solve_from(problem_of(generated("ring", {{"gpus", "5"}}), Collective::allgather, 4e6), kept);
  });
  SolveOptions options;
  options.chunks = kept->demand.chunks_per_contribution() + 1;
  expect_error(ExitCode::usage, {"--chunks is ", "leave --chunks out"},
               [&] { solve_from(problem_of(ring, Collective::allgather, 4e6, options), kept); });
}

TEST(Kept, ResumesFromAnyOfItsStates) {
  const Fabric torus = generated("torus", {{"dims", "3x3"}});
  SolveOptions options;
  options.engine = "list";
  const auto kept = solved(problem_of(torus, Collective::allgather, 9e4, options));
  const Problem problem = problem_of(damaged(*torus, 0.1, 1), Collective::allgather, 9e4, options);
  std::vector<std::pair<std::string, Bytes>> states;
  const SynthesisResult whole = solve_from(
      problem, kept,
      Checkpoints({.keep = [&](const std::string& name, const Bytes& s) { states.emplace_back(name, s); }},
                  0));
  ASSERT_GT(states.size(), 2U);
  for (std::size_t i = 0; i + 1 < states.size(); i += std::max<std::size_t>(1, states.size() / 4)) {
    const SynthesisResult resumed = solve_from(problem, kept,
                                               Checkpoints({.newest =
                                                                [&](const std::string& name) {
                                                                  std::optional<Bytes> newest;
                                                                  for (std::size_t k = 0; k <= i; ++k) {
                                                                    if (states[k].first == name)
                                                                      newest = states[k].second;
                                                                  }
                                                                  return newest;
                                                                }},
                                                           0));
    EXPECT_EQ(resumed.engine, whole.engine) << i;
    expect_same_sends(resumed.proven.schedule, whole.proven.schedule);
  }
}

}  // namespace
}  // namespace rondo::test_kept
