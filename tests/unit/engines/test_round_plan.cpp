#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fabrics.hpp"
#include "rondo/core/error.hpp"
#include "rounds/round_parts.hpp"
#include "rounds/round_plan.hpp"

/// What rounds are planned with, on a line 0 -> 1 -> 2 without latency, over which GPU 0 broadcasts two
/// chunks of 1 us a link. Hop h and link h lead from GPU h to the next.
namespace rondo::test_round_plan {
namespace {

constexpr double kUs = 1000;  ///< bytes that 1 GB/s carries in a microsecond

Send send(int chunk, int link, double start_us, double latency_us = 0) {
  return {ChunkId{chunk}, LinkId{link}, start_us, start_us + 1, start_us + 1 + latency_us};
}
Move move(int chunk, int hop, double start_us = 0) {
  return {ChunkId{chunk}, hop, start_us};
}
Holding holding(int chunk, int gpu, double from_us) {
  return {ChunkId{chunk}, GpuId{gpu}, from_us};
}
UnmetDemand unmet(int chunk, int gpu) {
  return {ChunkId{chunk}, GpuId{gpu}};
}
std::vector<double> starts_of(const std::vector<Send>& sends) {
  std::vector<double> starts;
  for (const Send& s : sends) starts.push_back(s.start_us);
  return starts;
}

class Line : public testing::Test {
 protected:
  const std::shared_ptr<const Topology> topology_ =
      fabric(std::vector<Node>(3), {link(0, 1, 1, 0), link(1, 2, 1, 0)});
  const Demand demand_ = make_demand(Collective::broadcast, 2 * kUs, 3, 2);
  const HopTable hops_{*topology_};
  CommittedSchedule committed_{*topology_, hops_, demand_};
};

using HopsOfSends = Line;

TEST_F(HopsOfSends, AreListedByStartAndHop) {
  const std::vector<Move> moves =
      HopFinder(hops_, demand_).moves_of(std::vector{send(0, 1, 1), send(0, 0, 0), send(1, 0, 1)});
  ASSERT_EQ(moves.size(), 3U);
  const std::vector<Move> expected = {move(0, 0, 0), move(1, 0, 1), move(0, 1, 1)};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(moves[i].chunk, expected[i].chunk) << i;
    EXPECT_EQ(moves[i].hop, expected[i].hop) << i;
    EXPECT_EQ(moves[i].start_us, expected[i].start_us) << i;
  }
}

TEST(HopsThroughSwitches, NeedAllOfTheirSends) {
  const auto topology = star(2);  // links 0: 0 -> 2, 1: 1 -> 2, 2: 2 -> 0, 3: 2 -> 1
  const HopTable hops(*topology);
  const Demand demand = make_demand(Collective::broadcast, kUs, 2, 1);
  const HopFinder finder(hops, demand);
  const std::vector<Move> moves = finder.moves_of(std::vector{send(0, 0, 5, 1), send(0, 3, 6, 1)});
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_EQ(hops.hop(moves[0].hop).src, GpuId{0});
  EXPECT_EQ(hops.hop(moves[0].hop).dst, GpuId{1});
  for (const auto& broken :
       {std::vector{send(0, 0, 5, 1)}, std::vector{send(0, 0, 5, 1), send(0, 3, 7, 1)}}) {
    try {
      finder.moves_of(broken);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
    }
  }
}

using Committed = Line;

TEST_F(Committed, KnowsWhoHoldsWhatAndWhichLinksAreTaken) {
  committed_.fix(std::vector{send(0, 0, 0)});
  EXPECT_EQ(committed_.held_from_us(ChunkId{0}, GpuId{1}), 1);
  EXPECT_TRUE(std::isinf(committed_.held_from_us(ChunkId{1}, GpuId{1})));
  EXPECT_EQ(committed_.link_free_us(LinkId{0}), 1);
  EXPECT_EQ(committed_.link_free_us(LinkId{1}), 0);

  const RoundState before = committed_.state(0.5);
  EXPECT_TRUE(before.buffers.empty());
  EXPECT_EQ(before.in_flight, std::vector{holding(0, 1, 1)});
  EXPECT_EQ(before.unmet, (std::vector{unmet(0, 2), unmet(1, 1), unmet(1, 2)}));
  EXPECT_EQ(committed_.state(1).buffers, std::vector{holding(0, 1, 1)});

  const PartialSchedule partial = committed_.partial(0.5, std::vector{send(1, 0, 1)});
  EXPECT_EQ(partial.holdings, (std::vector{holding(0, 1, 1), holding(1, 1, 2)}));
  EXPECT_EQ(partial.on_links.size(), 2U);
  EXPECT_TRUE(committed_.partial(1, {}).on_links.empty());

  EXPECT_FALSE(committed_.all_met());
  committed_.fix(std::vector{send(1, 0, 1), send(0, 1, 1), send(1, 1, 2)});
  EXPECT_TRUE(committed_.all_met());
}

TEST_F(Committed, StartsMovesAsEarlyAsTheyCanInTheirOrder) {
  committed_.fix(std::vector{send(0, 0, 0)});
  // 1 has chunk 0 from 1 on, and link 0 is free then; chunk 1 follows the move that brings it.
  const std::vector<Move> moves = {move(1, 0), move(0, 1), move(1, 1)};
  EXPECT_EQ(starts_of(committed_.realise(moves, 0)), (std::vector<double>{1, 1, 2}));
  EXPECT_EQ(starts_of(committed_.realise(moves, 3)), (std::vector<double>{3, 3, 4}));
  // 1 has chunk 0 already, and nobody brings it chunk 1.
  EXPECT_TRUE(committed_.realise(std::vector{move(0, 0), move(1, 1)}, 0).empty());
}

class PartTasks : public Line {
 protected:
  PartTask task(const RoundWindow& window, const std::vector<Move>& plan,
                const std::vector<PlacedMove>& decided = {}, const PartOptions& options = {},
                const Part& part = {}, std::vector<int> share_of_chunk = {}) const {
    const Decomposition decomposition{.stages = {{part}}, .share_of_chunk = std::move(share_of_chunk)};
    return make_part_task(*topology_, hops_, demand_, committed_, decomposition, part, window, plan, decided,
                          hops_.relay_distance_us(kUs), options);
  }
  /// (chunk, hop, epoch) of the start.
  static std::vector<std::tuple<int, int, int>> start_of(const PartTask& task) {
    std::vector<std::tuple<int, int, int>> start;
    for (const RoundStart& s : task.start) {
      const PlacedMove placed = task.moved(s);
      start.emplace_back(placed.chunk.value, placed.hop, placed.epoch);
    }
    return start;
  }
  const RoundWindow first_{.tau_us = 1, .epochs = 4};
  const std::vector<Move> plan_ = {move(0, 0, 0), move(1, 0, 1), move(0, 1, 1), move(1, 1, 2)};
};

TEST_F(PartTasks, AskAboutAllThatIsMissing) {
  const PartTask whole = task(first_, plan_);
  EXPECT_EQ(whole.refusal, "");
  EXPECT_EQ(whole.problem.num_nodes, 3);
  EXPECT_EQ(whole.problem.num_links, 2);
  EXPECT_EQ(whole.problem.paths,
            (std::vector<RoundProblem::Path>{{0, 1, 1, {{0, 0, 1}}}, {1, 2, 1, {{1, 0, 1}}}}));
  const RoundProblem::Chunk chunk{{{0, 0}}, {1, 2}};
  EXPECT_EQ(whole.problem.chunks, (std::vector{chunk, chunk}));
  EXPECT_EQ(whole.problem.distance[2], 2);  // epochs from 0 to 2
  EXPECT_TRUE(whole.problem.blocked.empty());
  EXPECT_EQ(start_of(whole),
            (std::vector<std::tuple<int, int, int>>{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {1, 1, 2}}));
  EXPECT_TRUE(whole.kept.empty());
}

TEST_F(PartTasks, BeginFromWhatIsCommitted) {
  committed_.fix(std::vector{send(0, 0, 1.5)});  // there, and the link free, half an epoch into the round
  const PartTask next = task({.begin_us = 2, .tau_us = 1, .epochs = 4, .round = 1}, {move(1, 0, 2.5)});
  EXPECT_EQ(next.chunks, (std::vector{ChunkId{1}, ChunkId{0}}));
  EXPECT_EQ(next.problem.chunks[0], (RoundProblem::Chunk{{{0, 0}}, {1, 2}}));
  EXPECT_EQ(next.problem.chunks[1], (RoundProblem::Chunk{{{0, 0}, {1, 1}}, {2}}));
  EXPECT_EQ(next.problem.blocked, (std::vector<RoundProblem::Blocked>{{0, -1, 0.5}}));
  EXPECT_EQ(start_of(next), (std::vector<std::tuple<int, int, int>>{{1, 0, 1}}));
}

TEST_F(PartTasks, GoByWhatStagesBeforeDecided) {
  const PartTask inner = task(first_, {move(0, 1, 1)}, {{ChunkId{0}, 0, 1}});
  // Chunk 0 sets out to 1 in epoch 1, on link 0 in [1, 2), so 1 can send it on in epoch 2.
  EXPECT_EQ(inner.problem.blocked, (std::vector<RoundProblem::Blocked>{{0, 1, 2}}));
  EXPECT_EQ(start_of(inner), (std::vector<std::tuple<int, int, int>>{{0, 1, 2}}));
  const auto chunk0 = std::ranges::find(inner.chunks, ChunkId{0}) - inner.chunks.begin();
  EXPECT_EQ(inner.problem.chunks[static_cast<std::size_t>(chunk0)],
            (RoundProblem::Chunk{{{0, 0}, {1, 2}}, {2}}));
}

TEST_F(PartTasks, OfAShareHaveItsChunksAndEverySecondEpoch) {
  const Part second{.name = "second", .share = 1, .shares = 2};
  const PartTask odd = task(first_, plan_, {}, {}, second, {0, 1});
  EXPECT_EQ(odd.chunks, std::vector{ChunkId{1}});
  EXPECT_EQ(odd.problem.paths[0].period, 2);
  EXPECT_EQ(odd.problem.paths[0].phase, 1);
  EXPECT_EQ(start_of(odd), (std::vector<std::tuple<int, int, int>>{{1, 0, 1}, {1, 1, 3}}));
  // Slots count from the beginning of the schedule: epoch 0 of round 1 is epoch 3 of all.
  const PartTask next =
      task({.begin_us = 3, .tau_us = 1, .epochs = 3, .round = 1}, {}, {}, {}, second, {0, 1});
  EXPECT_EQ(next.problem.paths[0].phase, 0);
}

TEST_F(PartTasks, LeaveToThePlanWhatIsTooLarge) {
  // The first link can start in 4 epochs, the second, which waits for it, in 3.
  const PartTask refused = task(first_, plan_, {}, {.max_columns = 6});
  EXPECT_EQ(refused.refusal, "one chunk alone has 7 columns, more than 6");
  EXPECT_EQ(refused.kept.size(), 4U);
  const PartTask half = task(first_, plan_, {}, {.max_columns = 13});
  EXPECT_EQ(half.chunks.size(), 1U);
  EXPECT_EQ(half.start.size(), 2U);
  EXPECT_EQ(half.kept.size(), 2U);
  EXPECT_EQ(half.problem.blocked.size(), 2U);  // by the chunk that is kept
}

TEST(LandingEpochs, CoverTheHop) {
  const auto topology = star(2);
  const HopTable hops(*topology);
  const Hop& hop = hops.hop(hops.into(GpuId{1}).front());  // 1 us, and 1 us of latency on both links
  EXPECT_EQ(landing_epochs(hop, kUs, 3), 1);
  EXPECT_EQ(landing_epochs(hop, kUs, 2), 2);
  EXPECT_EQ(landing_epochs(hop, kUs, 10), 1);
}

}  // namespace
}  // namespace rondo::test_round_plan
