#include <gtest/gtest.h>

#include <algorithm>

#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"

/// Rounds on a few nodes, epochs of 1 us, with the best starts known by hand.
namespace rondo::test_look_ahead_round {
namespace {

using Starts = std::vector<RoundStart>;
using Path = RoundProblem::Path;

/// Over one link, which it occupies for all of its time.
Path path(int src, int dst, int link, int landing = 1) {
  return {src, dst, landing, {{link, 0, static_cast<double>(landing)}}};
}

RoundProblem make_problem(int nodes, int epochs, std::vector<Path> paths,
                          std::vector<RoundProblem::Chunk> chunks) {
  RoundProblem problem;
  problem.num_epochs = epochs;
  problem.num_nodes = nodes;
  for (const Path& w : paths) {
    for (const auto& use : w.links) problem.num_links = std::max(problem.num_links, use.link + 1);
  }
  const auto n = static_cast<std::size_t>(nodes);
  problem.distance.assign(n * n, kInfinity);
  const auto distance = [&](int from, int to) -> double& {
    return problem.distance[static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to)];
  };
  for (int v = 0; v < nodes; ++v) distance(v, v) = 0;
  for (const Path& w : paths)
    distance(w.src, w.dst) = std::min(distance(w.src, w.dst), static_cast<double>(w.landing));
  for (int via = 0; via < nodes; ++via) {
    for (int from = 0; from < nodes; ++from) {
      for (int to = 0; to < nodes; ++to)
        distance(from, to) = std::min(distance(from, to), distance(from, via) + distance(via, to));
    }
  }
  problem.paths = std::move(paths);
  problem.chunks = std::move(chunks);
  return problem;
}

/// Links 0 -> 1 -> 2.
RoundProblem line(int epochs, std::vector<RoundProblem::Chunk> chunks, int landing = 1) {
  return make_problem(3, epochs, {path(0, 1, 0, landing), path(1, 2, 1, landing)}, std::move(chunks));
}

/// The best starts. The way back to the model has to lead to the same worth, and sending nothing is always
/// allowed.
Starts solve(const RoundProblem& problem, double* objective = nullptr) {
  const BuiltRound built = look_ahead_round(problem);
  const Solution solution = make_cbc_solver()->solve(built.model, {});
  EXPECT_EQ(solution.status, SolveStatus::optimal);
  if (solution.x.empty()) return {};
  const Starts starts = built.decode(solution);
  const auto encoded = built.encode(starts);
  EXPECT_TRUE(encoded.has_value());
  if (encoded) {
    EXPECT_NEAR(objective_of(built.model, *encoded), solution.objective, 1e-5);
    Solution again;
    again.x = *encoded;
    EXPECT_EQ(built.decode(again), starts);
  }
  const auto nothing = built.encode({});
  EXPECT_TRUE(nothing.has_value());
  if (nothing) {
    EXPECT_EQ(objective_of(built.model, *nothing), 0);
  }
  if (objective) *objective = solution.objective;
  return starts;
}

std::vector<int> epochs_of(const Starts& starts) {
  std::vector<int> epochs;
  for (const RoundStart& start : starts) epochs.push_back(start.epoch);
  return epochs;
}

TEST(LookAheadRound, WhatLandsInTheNextRoundSetsOutAtOnce) {
  double objective = 0;
  EXPECT_EQ(solve(make_problem(2, 2, {path(0, 1, 0, 3)}, {{{{0, 0}}, {1}}}), &objective),
            (Starts{{0, 0, 0}}));
  EXPECT_NEAR(objective, -(2 * 2 + 3 - 3), 2e-4);  // twice the round, distance now, less the landing
}

TEST(LookAheadRound, WhatLandsThreeRoundsLaterSetsOutAtOnce) {
  EXPECT_EQ(solve(make_problem(2, 2, {path(0, 1, 0, 7)}, {{{{0, 0}}, {1}}})), (Starts{{0, 0, 0}}));
}

TEST(LookAheadRound, WhatIsInFlightIsNotSentAgain) {
  // Lands three epochs after the round; nobody else wants it.
  const BuiltRound met = look_ahead_round(make_problem(2, 2, {path(0, 1, 0)}, {{{{0, 0}, {1, 5}}, {}}}));
  EXPECT_EQ(met.model.num_columns(), 0);
  EXPECT_TRUE(met.decode({}).empty());
  // Node 2 wants it still and gets it from node 0, way 1, not over node 1.
  EXPECT_EQ(
      solve(make_problem(3, 2, {path(0, 1, 0), path(0, 2, 1), path(1, 2, 2)}, {{{{0, 0}, {1, 5}}, {2}}})),
      (Starts{{0, 1, 0}}));
}

TEST(LookAheadRound, ARelayGoesOnFromWhereTheChunkLands) {
  EXPECT_EQ(solve(line(4, {{{{0, 0}, {1, 2}}, {2}}})), (Starts{{0, 1, 2}}));
  // It lands when the round is over: the next round's business.
  EXPECT_TRUE(solve(line(4, {{{{0, 0}, {1, 4}}, {2}}})).empty());
}

TEST(LookAheadRound, WhatArrivesInTheRoundGoesOnInIt) {
  EXPECT_EQ(solve(line(2, {{{{0, 0}}, {1, 2}}})), (Starts{{0, 0, 0}, {0, 1, 1}}));
  EXPECT_EQ(solve(line(4, {{{{0, 0}}, {2}}}, 2)), (Starts{{0, 0, 0}, {0, 1, 2}}));
}

TEST(LookAheadRound, ComesNearerWhereTheDestinationIsOutOfReach) {
  RoundProblem problem = line(1, {{{{0, 0}}, {2}}});
  double objective = 0;
  EXPECT_EQ(solve(problem, &objective), (Starts{{0, 0, 0}}));
  EXPECT_NEAR(objective, -0.9, 2e-3);  // gamma for the one epoch won; to relay costs a little
  problem.gamma = 0;
  EXPECT_TRUE(solve(problem).empty());
}

TEST(LookAheadRound, NothingGoesAway) {
  // Node 2 is no nearer to node 1 than node 0 is.
  EXPECT_EQ(solve(make_problem(3, 3, {path(0, 1, 0), path(0, 2, 1), path(2, 1, 2)}, {{{{0, 0}}, {1}}})),
            (Starts{{0, 0, 0}}));
}

TEST(LookAheadRound, ChunksOfTwoEpochsTakeTurnsOnALink) {
  const std::vector<RoundProblem::Chunk> two(2, {{{0, 0}}, {1}});
  const std::vector<Path> paths{path(0, 1, 0, 2)};
  EXPECT_EQ(epochs_of(solve(make_problem(2, 4, paths, two))), (std::vector<int>{0, 2}));
  EXPECT_EQ(epochs_of(solve(make_problem(2, 3, paths, two))), (std::vector<int>{0, 2}));  // one lands later
  EXPECT_EQ(epochs_of(solve(make_problem(2, 2, paths, two))), (std::vector<int>{0}));
}

TEST(LookAheadRound, LatencyDoesNotOccupy) {
  const Path slow{0, 1, 5, {{0, 0, 1}}};
  EXPECT_EQ(epochs_of(solve(make_problem(2, 2, {slow}, {{{{0, 0}}, {1}}, {{{0, 0}}, {1}}}))),
            (std::vector<int>{0, 1}));
}

TEST(LookAheadRound, KeepsOffBlockedTimes) {
  RoundProblem problem = make_problem(2, 4, {path(0, 1, 0)}, {{{{0, 0}}, {1}}});
  problem.blocked = {{0, -1, 1.5}};
  EXPECT_EQ(solve(problem), (Starts{{0, 0, 2}}));
  // Two epochs do not fit before [1, 2).
  problem = make_problem(2, 4, {path(0, 1, 0, 2)}, {{{{0, 0}}, {1}}});
  problem.blocked = {{0, 1, 2}};
  EXPECT_EQ(solve(problem), (Starts{{0, 0, 2}}));
  // One does, and ends where the block begins.
  problem = make_problem(2, 4, {path(0, 1, 0)}, {{{{0, 0}}, {1}}});
  problem.blocked = {{0, 1, 2}};
  EXPECT_EQ(solve(problem), (Starts{{0, 0, 0}}));
}

TEST(LookAheadRound, StartsInItsSlots) {
  RoundProblem problem = make_problem(2, 6, {path(0, 1, 0)}, {{{{0, 0}}, {1}}, {{{0, 0}}, {1}}});
  problem.paths[0].period = 3;
  problem.paths[0].phase = 2;
  EXPECT_EQ(epochs_of(solve(problem)), (std::vector<int>{2, 5}));
}

TEST(LookAheadRound, AGroupGetsAChunkOnce) {
  RoundProblem problem = make_problem(3, 2, {path(0, 1, 0), path(0, 2, 1)}, {{{{0, 0}}, {1, 2}}});
  EXPECT_EQ(solve(problem).size(), 2U);
  problem.group = {0, 1, 1};
  EXPECT_EQ(epochs_of(solve(problem)), (std::vector<int>{0}));
  // One of them has it in flight: nothing to decide between the groups.
  problem.chunks = {{{{0, 0}, {1, 9}}, {2}}};
  EXPECT_EQ(look_ahead_round(problem).model.num_columns(), 0);
}

/// Through a switch to node 1, over the shared link 2 three epochs after the start from node 0, four after
/// that from node 2.
RoundProblem through_a_switch(int epochs) {
  return make_problem(3, epochs, {{0, 1, 5, {{0, 0, 1}, {2, 3, 2}}}, {2, 1, 5, {{1, 0, 1}, {2, 4, 1}}}},
                      {{{{0, 0}}, {1}}, {{{2, 0}}, {1}}});
}

TEST(LookAheadRound, AWayThroughASwitchIsTakenAsAWhole) {
  RoundProblem alone = through_a_switch(1);
  alone.chunks.pop_back();
  EXPECT_EQ(solve(alone), (Starts{{0, 0, 0}}));  // its second link comes when the round is over
  alone.blocked = {{2, 4.5, 6}};                 // and has to be free then
  EXPECT_TRUE(solve(alone).empty());
}

TEST(LookAheadRound, WaysThatShareALinkBehindTheSwitchTakeTurns) {
  // On the shared link [3, 5) and [4, 5).
  EXPECT_EQ(solve(through_a_switch(1)).size(), 1U);
  EXPECT_EQ(solve(through_a_switch(2)), (Starts{{0, 0, 0}, {1, 1, 1}}));
}

TEST(LookAheadRound, EncodeRefusesStartsThatBreakTheModel) {
  RoundProblem problem = make_problem(3, 4, {path(0, 1, 0, 2), path(1, 2, 1), path(0, 2, 2)},
                                      {{{{0, 0}}, {1, 2}}, {{{0, 0}}, {1, 2}}});
  problem.blocked = {{2, 3, 4}};
  const BuiltRound built = look_ahead_round(problem);
  EXPECT_TRUE(built.encode({{0, 0, 0}, {0, 1, 2}, {1, 2, 0}, {1, 0, 2}}));
  EXPECT_FALSE(built.encode({{0, 0, 0}, {0, 1, 1}}));             // goes on before it has arrived
  EXPECT_FALSE(built.encode({{0, 1, 2}}));                        // was never there
  EXPECT_FALSE(built.encode({{0, 0, 0}, {1, 0, 1}}));             // two at once on link 0
  EXPECT_FALSE(built.encode({{0, 0, 0}, {0, 0, 2}}));             // arrives twice
  EXPECT_FALSE(built.encode({{0, 0, 0}, {0, 1, 2}, {0, 2, 0}}));  // twice over two ways
  EXPECT_FALSE(built.encode({{0, 2, 3}}));                        // blocked
  EXPECT_FALSE(built.encode({{0, 0, 4}}));                        // not in this round
  EXPECT_FALSE(built.encode({{0, 0, -1}}));
}

TEST(LookAheadRound, EncodeRefusesForeignSlotsAndASecondOfAGroup) {
  RoundProblem problem = make_problem(3, 4, {path(0, 1, 0), path(0, 2, 1)}, {{{{0, 0}}, {1, 2}}});
  problem.paths[0].period = 2;
  problem.paths[0].phase = 1;
  problem.group = {0, 1, 1};
  const BuiltRound built = look_ahead_round(problem);
  EXPECT_TRUE(built.encode({{0, 0, 1}}));
  EXPECT_FALSE(built.encode({{0, 0, 0}}));
  EXPECT_FALSE(built.encode({{0, 0, 1}, {0, 1, 0}}));
}

}  // namespace
}  // namespace rondo::test_look_ahead_round
