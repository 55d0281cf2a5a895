#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>

#include "rondo/solvers/pdhg.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo::test_pdhg {
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

enum class ColumnKind { from_below, from_above, free, boxed, fixed };
enum class RowKind { one_sided, ranged, equality };

/// Feasible and bounded: a point keeps all rows and columns, and costs are those of a dual point. Columns and
/// rows of every kind.
LinearModel random_model(unsigned seed) {
  Numbers numbers(seed);
  LinearModel model;
  const int columns = 2 + numbers.below(10);
  const int rows = 1 + numbers.below(8);
  std::vector<double> point;
  for (int j = 0; j < columns; ++j) {
    const double at = numbers.below(9) - 3;
    const double room = numbers.below(4);
    const double reduced_cost = numbers.below(6);
    point.push_back(at);
    switch (static_cast<ColumnKind>(numbers.below(8) / 2 + numbers.below(2))) {
      case ColumnKind::from_below:
        model.add_column(at - room, kInfinity, reduced_cost);
        break;
      case ColumnKind::from_above:
        model.add_column(-kInfinity, at + room, -reduced_cost);
        break;
      case ColumnKind::free:
        model.add_column(-kInfinity, kInfinity, 0);
        break;
      case ColumnKind::boxed:
        model.add_column(at - room, at + numbers.below(3), numbers.value());
        break;
      case ColumnKind::fixed:
        model.add_column(at, at, numbers.value());
        break;
    }
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
    const auto kind = static_cast<RowKind>(numbers.below(3));
    const double below = kind == RowKind::equality ? 0 : numbers.below(3);
    const double above = kind == RowKind::equality ? 0 : numbers.below(3);
    model.row_lower[r] = kind == RowKind::one_sided && dual < 0 ? -kInfinity : activity - below;
    model.row_upper[r] = kind == RowKind::one_sided && dual >= 0 ? kInfinity : activity + above;
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
    // Far from the optimum as well, and from a start that no row allows.
    SolveLimits limits;
    limits.max_iterations = 10;
    const std::vector<double> nowhere(model.cost.size(), 1e4);
    for (const std::vector<double>* start : {static_cast<const std::vector<double>*>(nullptr), &nowhere}) {
      const Solution early = make_pdhg_solver(*alone)->solve(model, limits, start);
      EXPECT_LE(early.dual_bound, exact.objective + kClpMisses * scale) << seed;
    }
  }
  EXPECT_GE(finite, 100);  // rows do not bound every column without bounds of its own
}

/// Two columns that must be equal by way of a chain of 40 more, the last one at most 1.
LinearModel chain() {
  LinearModel model;
  for (int j = 0; j < 42; ++j) model.add_column(0, kInfinity, j == 0 ? -1 : 0);
  model.column_upper.back() = 1;
  for (int i = 0; i < 41; ++i) {
    model.add_row(0, 0);
    model.add_entry(i, i, 1);
    model.add_entry(i, i + 1, -1);
  }
  return model;
}

TEST(Pdhg, ImpliedBoundsMakeTheDualBoundFinite) {
  LinearModel model;  // x <= 3 by two rows: no single row says so
  model.add_column(-kInfinity, kInfinity, -1);
  model.add_column(-kInfinity, kInfinity, 0);
  for (const double sign : {1.0, -1.0}) {
    const int row = model.add_row(-kInfinity, 3);
    model.add_entry(row, 0, 1);
    model.add_entry(row, 1, sign);
  }
  const auto alone = make_local_communicator();
  const Solution blind = make_pdhg_solver(*alone)->solve(model, {});
  EXPECT_NEAR(blind.objective, -3, 1e-4);
  model.column_lower = {0, -10};
  model.implied_upper = {3, 10};
  const Solution solution = make_pdhg_solver(*alone)->solve(model, {});
  EXPECT_LE(solution.dual_bound, -3);
  EXPECT_NEAR(solution.dual_bound, -3, 1e-4);
}

TEST(Pdhg, GoesOnFromWhereItWasInterrupted) {
  const auto alone = make_local_communicator();
  const LinearModel model = chain();
  const Solution whole = make_pdhg_solver(*alone)->solve(model, {});
  ASSERT_EQ(whole.status, SolveStatus::optimal);
  ASSERT_GT(whole.iterations, 200);

  std::map<std::uint64_t, PdhgIterate> kept;
  std::atomic<bool> interrupt{false};
  PdhgOptions options;
  options.interrupt = &interrupt;
  options.store.newest = [&](std::uint64_t id) -> std::optional<PdhgIterate> {
    const auto found = kept.find(id);
    if (found == kept.end()) return std::nullopt;
    return found->second;
  };
  options.store.offer = [&](std::uint64_t id, const std::function<PdhgIterate()>& iterate, bool last) {
    EXPECT_EQ(last, interrupt.load());
    if (last) kept[id] = iterate();
    if (kept.empty() && iterate().iterations > whole.iterations / 2) interrupt = true;
  };
  const Solution stopped = make_pdhg_solver(*alone, options)->solve(model, {});
  EXPECT_EQ(stopped.status, SolveStatus::no_solution);
  ASSERT_EQ(kept.size(), 1u);

  interrupt = false;
  const Solution rest = make_pdhg_solver(*alone, options)->solve(model, {});
  ASSERT_EQ(rest.status, SolveStatus::optimal);
  EXPECT_LT(rest.iterations, whole.iterations);
  EXPECT_NEAR(rest.objective, whole.objective, 1e-4);

  LinearModel other = model;  // goes on from nothing
  other.entry_value.back() = -2;
  EXPECT_EQ(make_pdhg_solver(*alone, options)->solve(other, {}).status, SolveStatus::optimal);
  EXPECT_EQ(kept.size(), 1u);
}

}  // namespace
}  // namespace rondo::test_pdhg
