#include <algorithm>
#include <cmath>

#include "backends.hpp"
#include "rondo/core/error.hpp"

namespace rondo::test_continuous {
namespace {

class Continuous : public SolverSuite {};
INSTANTIATE_TEST_SUITE_P(Solvers, Continuous, all_backends(), backend_name);

/// max 3a + 5b, a <= 4, 2b <= 12, 3a + 2b <= 18, a, b >= 0: a = 2, b = 6, 36; prices 0, 3/2, 1.
LinearModel textbook() {
  LinearModel model;
  model.add_column(0, kInfinity, -3);
  model.add_column(0, kInfinity, -5);
  add_row(model, -kInfinity, 4, {1, 0});
  add_row(model, -kInfinity, 12, {0, 2});
  add_row(model, -kInfinity, 18, {3, 2});
  return model;
}

/// The value of the dual: sum of y * (the bound of the row that y's sign makes active), plus the same for
/// columns.
double dual_objective(const LinearModel& model, const Solution& solution, double zero) {
  std::vector<double> reduced = model.cost;
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    reduced[static_cast<std::size_t>(model.entry_column[e])] -=
        model.entry_value[e] * solution.row_dual[static_cast<std::size_t>(model.entry_row[e])];
  }
  const auto term = [zero](double y, double lower, double upper) {
    return std::abs(y) < zero ? 0.0 : y * (y > 0 ? lower : upper);
  };
  double value = 0;
  for (std::size_t i = 0; i < model.row_lower.size(); ++i) {
    value += term(solution.row_dual[i], model.row_lower[i], model.row_upper[i]);
  }
  for (std::size_t j = 0; j < reduced.size(); ++j)
    value += term(reduced[j], model.column_lower[j], model.column_upper[j]);
  return value;
}

TEST_P(Continuous, FindsTheOptimumAndItsPrices) {
  const Solution solution = solver().solve(textbook(), {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, -36, within(-36));
  EXPECT_NEAR(solution.dual_bound, -36, within(-36));
  EXPECT_NEAR(solution.x.at(0), 2, within(2));
  EXPECT_NEAR(solution.x.at(1), 6, within(6));
  // d objective / d right-hand side of a minimisation: more room lowers it.
  ASSERT_EQ(solution.row_dual.size(), 3u);
  EXPECT_NEAR(solution.row_dual[0], 0, within(0));
  EXPECT_NEAR(solution.row_dual[1], -1.5, within(-1.5));
  EXPECT_NEAR(solution.row_dual[2], -1, within(-1));
}

TEST_P(Continuous, PricesOfRowsFromBelowArePositive) {
  LinearModel model;  // min 2a + 3b, a + b >= 4, a <= 3
  model.add_column(0, 3, 2);
  model.add_column(0, kInfinity, 3);
  add_row(model, 4, kInfinity, {1, 1});
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, 9, within(9));
  EXPECT_NEAR(solution.row_dual.at(0), 3, within(3));
}

TEST_P(Continuous, StrongDualityHoldsWithBoundsEqualitiesAndRanges) {
  LinearModel model;
  model.add_column(0, 2, -1);
  model.add_column(-kInfinity, kInfinity, 1);
  model.add_column(1, 5, -2);
  model.add_column(-3, kInfinity, 0.5);
  add_row(model, 3, 3, {1, 1, 0, 1});
  add_row(model, -2, 6, {0, 1, 1, 0});
  add_row(model, -kInfinity, 4, {1, 0, 1, -1});
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_LE(max_violation(model, solution.x), std::max(1e-7, within()));
  EXPECT_NEAR(dual_objective(model, solution, within()), solution.objective, std::max(1e-7, within(10)));
}

TEST_P(Continuous, SaysInfeasible) {
  LinearModel model;
  model.add_column(0, 1, 1);
  model.add_column(0, 1, 1);
  add_row(model, 3, kInfinity, {1, 1});
  const Solution solution = solver().solve(model, {});
  EXPECT_EQ(solution.status, SolveStatus::infeasible);
  EXPECT_TRUE(solution.x.empty());
}

TEST_P(Continuous, SaysInfeasibleWhereThatTakesSeveralRows) {
  LinearModel model;  // three pairs that sum to 1, all three to 2; unbounded were it not for that
  for (int j = 0; j < 3; ++j) model.add_column(-kInfinity, kInfinity, -1);
  model.add_column(0, kInfinity, -1);
  add_row(model, 1, 1, {1, 1, 0});
  add_row(model, 1, 1, {0, 1, 1});
  add_row(model, 1, 1, {1, 0, 1});
  add_row(model, 2, 2, {1, 1, 1});
  add_row(model, 0, kInfinity, {1, 0, 0, 1});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Continuous, SaysUnbounded) {
  LinearModel model;
  model.add_column(0, kInfinity, -1);
  model.add_column(0, kInfinity, 0);
  add_row(model, -kInfinity, 1, {1, -1});
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::unbounded);
}

TEST_P(Continuous, SolvesTheEmptyModel) {
  const Solution solution = solver().solve({}, {});
  EXPECT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.objective, 0);
  EXPECT_TRUE(solution.x.empty());
}

TEST_P(Continuous, SolvesWithoutRows) {
  LinearModel model;
  model.add_column(1, 4, 2);
  model.add_column(-1, 3, -1);
  model.add_column(-kInfinity, kInfinity, 0);
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.objective, 2 - 3);
  EXPECT_EQ(max_violation(model, solution.x), 0);
  model.cost[2] = 1;
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::unbounded);
  model.column_lower[0] = 5;
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Continuous, SolvesWithoutColumns) {
  LinearModel model;
  model.add_row(-1, 0);
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_EQ(solution.row_dual.size(), 1u);
  model.add_row(1, kInfinity);
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Continuous, AnEmptyRowCountsBesideOthers) {
  LinearModel model = textbook();
  model.add_row(1, 1);
  EXPECT_EQ(solver().solve(model, {}).status, SolveStatus::infeasible);
}

TEST_P(Continuous, AnEmptyColumnCountsBesideOthers) {
  LinearModel model = textbook();
  model.add_column(0, 7, -1);
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, -43, within(-43));
}

TEST_P(Continuous, DegenerateTransport) {
  // Three unit supplies, three unit demands, costs |i - j|: nine columns, six rows, many bases of the one
  // optimum 0.
  LinearModel model;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) model.add_column(0, kInfinity, std::abs(i - j));
  }
  for (int i = 0; i < 3; ++i) {
    const int supply = model.add_row(1, 1);
    const int demand = model.add_row(1, 1);
    for (int j = 0; j < 3; ++j) {
      model.add_entry(supply, 3 * i + j, 1);
      model.add_entry(demand, 3 * j + i, 1);
    }
  }
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, 0, within(0));
  EXPECT_NEAR(dual_objective(model, solution, within()), 0, within(0));
}

TEST_P(Continuous, FreeColumns) {
  LinearModel model;  // least distance t to the points 1, 2 and 6 of a free x: t = 2.5 at 3.5
  model.add_column(-kInfinity, kInfinity, 0);
  model.add_column(-kInfinity, kInfinity, 1);
  for (const double point : {1.0, 2.0, 6.0}) {
    add_row(model, point, kInfinity, {1, 1});
    add_row(model, -point, kInfinity, {-1, 1});
  }
  const Solution solution = solver().solve(model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.x.at(0), 3.5, within(3.5));
  EXPECT_NEAR(solution.objective, 2.5, within(2.5));
}

TEST_P(Continuous, RangedRowsBindOnEitherSide) {
  LinearModel model;
  model.add_column(-10, 10, 1);
  model.add_column(-10, 10, 0);
  const int row = add_row(model, -2, 3, {1, 1});
  model.column_lower[1] = model.column_upper[1] = 1;
  EXPECT_NEAR(solver().solve(model, {}).objective, -3, within(-3));
  model.cost[0] = -1;
  const Solution solution = solver().solve(model, {});
  EXPECT_NEAR(solution.objective, -2, within(-2));
  EXPECT_NEAR(solution.row_dual.at(static_cast<std::size_t>(row)), -1, within(-1));
}

TEST_P(Continuous, AWarmStartLeadsToTheSameOptimum) {
  const std::vector<double> optimal{2, 6};
  const std::vector<double> infeasible{-5, 100};
  for (const auto& start : {optimal, infeasible}) {
    const Solution solution = solver().solve(textbook(), {}, &start);
    ASSERT_EQ(solution.status, SolveStatus::optimal);
    EXPECT_NEAR(solution.objective, -36, within(-36));
    EXPECT_NEAR(solution.row_dual.at(2), -1, within(-1));
  }
}

TEST_P(Continuous, SolvesAgainAlike) {
  const Solution first = solver().solve(textbook(), {});
  const Solution second = solver().solve(textbook(), {});
  EXPECT_EQ(first.x, second.x);
  EXPECT_EQ(first.row_dual, second.row_dual);
  EXPECT_EQ(first.iterations, second.iterations);
}

TEST_P(Continuous, RefusesModelsWhoseSizesDoNotAgree) {
  const auto broken = [](void (*change)(LinearModel&)) {
    LinearModel model = textbook();
    change(model);
    return model;
  };
  for (const LinearModel& model : {
           broken([](LinearModel& m) { m.column_upper.pop_back(); }),
           broken([](LinearModel& m) { m.integer.push_back(0); }),
           broken([](LinearModel& m) { m.row_upper.push_back(0); }),
           broken([](LinearModel& m) { m.entry_value.pop_back(); }),
           broken([](LinearModel& m) { m.entry_row[0] = 3; }),
           broken([](LinearModel& m) { m.entry_column[0] = -1; }),
           broken([](LinearModel& m) { m.entry_value[0] = kInfinity; }),
           broken([](LinearModel& m) { m.cost[0] = std::nan(""); }),
           broken([](LinearModel& m) { m.row_lower[0] = kInfinity; }),
       }) {
    try {
      solver().solve(model, {});
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::internal);
    }
  }
}

TEST_P(Continuous, RefusesAStartOfAnotherSize) {
  const std::vector<double> start{1};
  try {
    solver().solve(textbook(), {}, &start);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
  }
}

}  // namespace
}  // namespace rondo::test_continuous
