#include "unconstrained.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rondo {

Solution solve_unconstrained(const LinearModel& model) {
  Solution solution;
  solution.status = SolveStatus::optimal;
  for (std::size_t i = 0; i < model.row_lower.size(); ++i) {
    if (model.row_lower[i] > 0 || model.row_upper[i] < 0) solution.status = SolveStatus::infeasible;
  }
  bool unbounded = false;
  double objective = 0;
  for (std::size_t j = 0; j < model.cost.size(); ++j) {
    const bool integer = model.integer[j] != 0;
    const double lower = integer ? std::ceil(model.column_lower[j]) : model.column_lower[j];
    const double upper = integer ? std::floor(model.column_upper[j]) : model.column_upper[j];
    if (lower > upper) solution.status = SolveStatus::infeasible;
    double x = model.cost[j] > 0 ? lower : upper;
    if (model.cost[j] == 0) x = lower > 0 ? lower : std::min(upper, 0.0);
    unbounded = unbounded || std::isinf(x);
    solution.x.push_back(x);
    objective += model.cost[j] * x;
  }
  if (solution.status == SolveStatus::optimal && unbounded) solution.status = SolveStatus::unbounded;
  if (solution.status != SolveStatus::optimal) {
    solution.x.clear();
    return solution;
  }
  solution.objective = solution.dual_bound = objective;
  solution.row_dual.assign(model.row_lower.size(), 0.0);
  return solution;
}

}  // namespace rondo
