#include <csignal>

#include "backends.hpp"
#include "rondo/core/error.hpp"

namespace rondo::test_integer {
namespace {

class Integer : public SolverSuite {};
INSTANTIATE_TEST_SUITE_P(Solvers, Integer, backends_with_integers(true), backend_name);

class ContinuousOnly : public SolverSuite {};
INSTANTIATE_TEST_SUITE_P(Solvers, ContinuousOnly, backends_with_integers(false), backend_name);

/// Weights 3, 4, 5, 9; values 3, 4, 4, 10; at most 11 in weight: items 0 and 1 weigh 7, item 3 alone 9 (10),
/// the best.
LinearModel knapsack() {
  LinearModel model;
  for (const double value : {3.0, 4.0, 4.0, 10.0}) model.add_column(0, 1, -value, true);
  add_row(model, -kInfinity, 11, {3, 4, 5, 9});
  return model;
}

TEST_P(ContinuousOnly, RefusesIntegerColumnsByName) {
  try {
    solver().solve(knapsack(), {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find(solver().name()), std::string::npos);
  }
}

TEST_P(Integer, FindsTheOptimum) {
  const Solution solution = solver().solve(knapsack(), {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.x, (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(solution.objective, -10);
  EXPECT_NEAR(solution.dual_bound, -10, 1e-6);
}

TEST_P(Integer, ContinuousColumnsBesideIntegerOnes) {
  LinearModel model;  // max n + y, 2n + y <= 4.5, y <= 1.2, n integer: n = 1 leaves y at 1.2, n = 2 at 0.5
  model.add_column(0, 10, -1, true);
  model.add_column(0, 1.2, -1);
  add_row(model, -kInfinity, 4.5, {2, 1});
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.x.at(0), 2);
  EXPECT_NEAR(solution.x.at(1), 0.5, 1e-9);
}

TEST_P(Integer, SaysInfeasibleWhereOnlyFractionsFit) {
  LinearModel model;
  model.add_column(0, 10, 1, true);
  model.add_column(0, 10, 1, true);
  add_row(model, 3, 3, {2, 4});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Integer, SaysInfeasibleWithoutAnObjective) {
  LinearModel model;  // three pairs of three binaries that each sum to 1
  for (int j = 0; j < 3; ++j) model.add_column(0, 1, 0, true);
  add_row(model, 1, 1, {1, 1, 0});
  add_row(model, 1, 1, {0, 1, 1});
  add_row(model, 1, 1, {1, 0, 1});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Integer, SaysInfeasibleWhereTheRelaxationIs) {
  LinearModel model = knapsack();
  add_row(model, 5, kInfinity, {1, 1, 1, 1});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Integer, SaysUnbounded) {
  LinearModel model;
  model.add_column(0, kInfinity, -1, true);
  model.add_column(0, kInfinity, 0, true);
  add_row(model, -kInfinity, 1, {1, -1});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::unbounded);
}

TEST_P(Integer, RoundsBoundsInwardsWithoutRows) {
  LinearModel model;
  model.add_column(0.5, 2.5, 1, true);
  model.add_column(-2.5, 2.5, -1, true);
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.x, (std::vector<double>{1, 2}));
  model.column_upper[0] = 0.75;
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Integer, CutoffExcludesWhatIsNotBetter) {
  SolveLimits limits;
  limits.cutoff = -9.5;
  EXPECT_EQ(solver().solve(knapsack(), limits).objective, -10);
  limits.cutoff = -10;
  EXPECT_EQ(solver().solve(knapsack(), limits).status, SolveStatus::infeasible);
  const std::vector<double> start{0, 0, 0, 1};
  EXPECT_EQ(solver().solve(knapsack(), limits, &start).status, SolveStatus::infeasible);
}

TEST_P(Integer, LeavesNoSignalHandlerAndPrintsNothing) {
  std::signal(SIGINT, SIG_DFL);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const std::vector<double> start{0, 0, 0, 1};
  solver().solve(knapsack(), {}, &start);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_DFL);
}

}  // namespace
}  // namespace rondo::test_integer
