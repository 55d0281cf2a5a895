#include <atomic>
#include <cmath>

#include "hard_models.hpp"

namespace rondo::test_integer_limits {
namespace {

class IntegerLimits : public SolverSuite {};
INSTANTIATE_TEST_SUITE_P(Solvers, IntegerLimits, backends_with_integers(true), backend_name);

TEST_P(IntegerLimits, Nodes) {
  SolveLimits limits;
  limits.max_nodes = 20;
  const Solution solution = solver().solve(market_split(), limits);
  expect_stopped(solution);
  EXPECT_LT(solution.nodes, 200);
}

TEST_P(IntegerLimits, TheGapEndsTheSearchAndIsKept) {
  const LinearModel model = packing(60, 10, true);
  SolveLimits limits;
  limits.relative_gap = 0.05;
  const Solution solution = solver().solve(model, limits);
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_LE(max_violation(model, solution.x), 1e-6);
  EXPECT_LE(solution.dual_bound, solution.objective);
  EXPECT_LE(solution.objective - solution.dual_bound, 0.0501 * std::abs(solution.dual_bound));
}

TEST_P(IntegerLimits, AStartIsASolution) {
  const LinearModel model = packing(60, 10, true);
  std::vector<double> start(60, 0);
  start[7] = 1;
  SolveLimits limits;
  limits.max_nodes = 0;
  const Solution solution = solver().solve(model, limits, &start);
  ASSERT_FALSE(solution.x.empty());
  EXPECT_LE(solution.objective, objective_of(model, start));
  EXPECT_LE(max_violation(model, solution.x), 1e-6);
}

TEST_P(IntegerLimits, AStartSurvivesAnInterruption) {
  const LinearModel model = packing(60, 10, true);
  std::vector<double> start(60, 0);
  start[7] = 1;
  const std::atomic<bool> interrupt{true};
  SolveLimits limits;
  limits.interrupt = &interrupt;
  const Solution solution = solver().solve(model, limits, &start);
  ASSERT_EQ(solution.status, SolveStatus::feasible);
  EXPECT_LE(solution.objective, objective_of(model, start));
}

TEST_P(IntegerLimits, TheSameNodesGiveTheSameAnswer) {
  const LinearModel model = packing(60, 10, true);
  SolveLimits limits;
  limits.max_nodes = 30;
  const Solution first = solver().solve(model, limits);
  const Solution second = solver().solve(model, limits);
  EXPECT_EQ(first.x, second.x);
  EXPECT_EQ(first.nodes, second.nodes);
  EXPECT_EQ(first.iterations, second.iterations);
}

}  // namespace
}  // namespace rondo::test_integer_limits
