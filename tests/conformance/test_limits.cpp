#include <atomic>
#include <chrono>
#include <thread>

#include "hard_models.hpp"
#include "rondo/core/stopwatch.hpp"

namespace rondo::test_limits {
namespace {

class Limits : public SolverSuite {
 protected:
  /// Long enough for both kinds of backend.
  LinearModel long_model() const {
    return solver().supports_integer() ? market_split() : packing(1500, 700, false);
  }
};
INSTANTIATE_TEST_SUITE_P(Solvers, Limits, all_backends(), backend_name);

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

}  // namespace
}  // namespace rondo::test_limits
