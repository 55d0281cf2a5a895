#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rondo/solvers/pdhg.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {
namespace {

/// Small numbers, the same everywhere.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : generator_(seed) {}
  int below(int n) { return static_cast<int>(generator_() % static_cast<unsigned>(n)); }
  double value() { return below(19) - 9; }

 private:
  std::mt19937 generator_;
};

/// Feasible and bounded: rows leave room around a point within the columns' bounds, some of which are open,
/// and costs are those of a dual point.
LinearModel random_model(unsigned seed) {
  Numbers numbers(seed);
  LinearModel model;
  const int columns = 2 + numbers.below(10);
  const int rows = 1 + numbers.below(8);
  std::vector<double> point;
  for (int j = 0; j < columns; ++j) {
    point.push_back(numbers.below(5));
    const bool open = numbers.below(3) > 0;
    model.add_column(0, open ? kInfinity : point.back() + numbers.below(4), numbers.below(6));
  }
  for (int i = 0; i < rows; ++i) {
    double activity = 0;
    const int row = model.add_row(0, 0);
    const double dual = numbers.below(7) - 3;
    for (int j = 0; j < columns; ++j) {
      if (numbers.below(2) == 0) continue;
      const double value = numbers.value();
      if (value == 0) continue;
      model.add_entry(row, j, value);
      model.cost[static_cast<std::size_t>(j)] += dual * value;
      activity += value * point[static_cast<std::size_t>(j)];
    }
    const auto r = static_cast<std::size_t>(row);
    model.row_lower[r] = dual < 0 ? -kInfinity : activity - numbers.below(3);
    model.row_upper[r] = dual > 0 ? kInfinity : activity + numbers.below(3);
    if (dual == 0 && numbers.below(2) == 0) model.row_lower[r] = model.row_upper[r] = activity;
  }
  return model;
}

/// CLP's optimum is good to this.
constexpr double kClpMisses = 1e-9;

TEST(Pdhg, AgreesWithClpAndItsBoundIsNeverAboveTheOptimum) {
  const auto alone = make_local_communicator();
  const auto clp = make_clp_solver();
  int finite = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const LinearModel model = random_model(seed);
    const Solution exact = clp->solve(model, {});
    ASSERT_EQ(exact.status, SolveStatus::optimal) << seed;
    const Solution solution = make_pdhg_solver(*alone)->solve(model, {});
    if (model.entry_row.empty()) continue;
    ASSERT_EQ(solution.status, SolveStatus::optimal) << seed;
    const double scale = 1 + std::abs(exact.objective);
    EXPECT_NEAR(solution.objective, exact.objective, 1e-4 * scale) << seed;
    EXPECT_LE(max_violation(model, solution.x), 1e-4) << seed;
    EXPECT_LE(solution.dual_bound, exact.objective + kClpMisses * scale) << seed;
    if (std::isfinite(solution.dual_bound)) {
      ++finite;
      EXPECT_GE(solution.dual_bound, exact.objective - 1e-2 * scale) << seed;
    }
    // Far from the optimum as well.
    SolveLimits limits;
    limits.max_iterations = 10;
    EXPECT_LE(make_pdhg_solver(*alone)->solve(model, limits).dual_bound, exact.objective + kClpMisses * scale)
        << seed;
  }
  EXPECT_GE(finite, 150);
}

TEST(Pdhg, GoesOnFromACheckpoint) {
  const auto alone = make_local_communicator();
  const LinearModel model = random_model(11);
  PdhgOptions options;
  options.checkpoint_every = 40;
  std::vector<PdhgIterate> saved;
  options.checkpoint = [&](const PdhgIterate& iterate) { saved.push_back(iterate); };
  const Solution whole = make_pdhg_solver(*alone, options)->solve(model, {});
  ASSERT_EQ(whole.status, SolveStatus::optimal);
  ASSERT_FALSE(saved.empty());
  PdhgOptions resumed;
  resumed.start = saved.back();
  const Solution rest = make_pdhg_solver(*alone, resumed)->solve(model, {});
  ASSERT_EQ(rest.status, SolveStatus::optimal);
  EXPECT_LT(rest.iterations, whole.iterations);
  EXPECT_NEAR(rest.objective, whole.objective, 1e-4 * (1 + std::abs(whole.objective)));
}

}  // namespace
}  // namespace rondo
