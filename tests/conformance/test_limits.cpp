#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <thread>

#include "backends.hpp"
#include "rondo/core/stopwatch.hpp"

namespace rondo::test_limits {
namespace {

/// Whole numbers 1..n, the same everywhere.
class Numbers {
 public:
  double next(unsigned n) { return 1.0 + static_cast<double>(generator_() % n); }

 private:
  std::mt19937_64 generator_{7};
};

/// A dense random packing problem, too long for the limits it is given; feasible at 0.
LinearModel packing(int columns, int rows, bool integer) {
  Numbers numbers;
  LinearModel model;
  for (int j = 0; j < columns; ++j) model.add_column(0, 1, -numbers.next(100), integer);
  for (int i = 0; i < rows; ++i) {
    std::vector<double> weights(static_cast<std::size_t>(columns));
    double sum = 0;
    for (double& weight : weights) sum += weight = numbers.next(100);
    add_row(model, -kInfinity, std::floor(sum / 4), weights);
  }
  return model;
}

/// Market split: equalities that random subsets hardly ever meet; branch and bound needs ages to find out.
LinearModel market_split() {
  Numbers numbers;
  LinearModel model;
  for (int j = 0; j < 40; ++j) model.add_column(0, 1, 0, true);
  for (int i = 0; i < 5; ++i) {
    std::vector<double> weights(40);
    double sum = 0;
    for (double& weight : weights) sum += weight = numbers.next(100);
    add_row(model, std::floor(sum / 2), std::floor(sum / 2), weights);
  }
  return model;
}

class Limits : public SolverSuite {
 protected:
  /// Long enough for both kinds of backend.
  LinearModel long_model() const {
    return solver().supports_integer() ? market_split() : packing(1500, 700, false);
  }
  void expect_stopped(const Solution& solution) const {
    EXPECT_TRUE(solution.status == SolveStatus::no_solution || solution.status == SolveStatus::feasible)
        << to_string(solution.status);
  }
};
INSTANTIATE_TEST_SUITE_P(Solvers, Limits, all_backends(), backend_name);

class IntegerLimits : public Limits {};
INSTANTIATE_TEST_SUITE_P(Solvers, IntegerLimits, backends_with_integers(true), backend_name);

TEST_P(Limits, IterationsOfContinuousModels) {
  const LinearModel model = packing(60, 30, false);
  const Solution whole = solver().solve(model, {});
  ASSERT_EQ(whole.status, SolveStatus::optimal);
  SolveLimits limits;
  limits.max_iterations = 3;
  const Solution solution = solver().solve(model, limits);
  expect_stopped(solution);
  EXPECT_LE(solution.iterations, 3);
  EXPECT_LT(solution.iterations, whole.iterations);
  if (solution.status == SolveStatus::feasible) {
    EXPECT_LE(max_violation(model, solution.x), 1e-6);
    EXPECT_GE(solution.objective, whole.objective);
  }
}

TEST_P(Limits, NoTimeAtAll) {
  SolveLimits limits;
  limits.time_limit_s = 0;
  expect_stopped(solver().solve(long_model(), limits));
}

TEST_P(Limits, Time) {
  const LinearModel model = long_model();
  SolveLimits limits;
  limits.time_limit_s = 0.3;
  const Stopwatch clock;
  expect_stopped(solver().solve(model, limits));
  EXPECT_LT(clock.seconds(), 5);
}

TEST_P(Limits, InterruptedBeforeItBegins) {
  const std::atomic<bool> interrupt{true};
  SolveLimits limits;
  limits.interrupt = &interrupt;
  expect_stopped(solver().solve(long_model(), limits));
}

TEST_P(Limits, InterruptedFromAnotherThread) {
  const LinearModel model = long_model();
  std::atomic<bool> interrupt{false};
  SolveLimits limits;
  limits.interrupt = &interrupt;
  const Stopwatch clock;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    interrupt = true;
  });
  const Solution solution = solver().solve(model, limits);
  other.join();
  expect_stopped(solution);
  EXPECT_LT(clock.seconds(), 5);
}

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
}  // namespace rondo::test_limits
