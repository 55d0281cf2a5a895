#pragma once

#include <vector>

#include "pdhg_problem.hpp"
#include "rondo/model/linear_model.hpp"

/// Dual bounds that are valid at any point.
namespace rondo {

/// The contribution of a dual value y to the dual objective.
inline double dual_term(double y, double lower, double upper) {
  return y == 0 ? 0.0 : y * (y > 0 ? lower : upper);
}

struct ColumnBounds {
  std::vector<double> lower, upper;  ///< one a column of the model
};

/// Bounds of the columns that the rows and cost'x <= cutoff imply, for columns without their own. Needs a
/// model that has all its entries.
ColumnBounds implied_bounds(const LinearModel& model, double cutoff);

/// Collective. Weak duality at the multipliers `y` of the rows (own rows, scaled): a lower bound of the
/// optimum for any multipliers; -infinity where a reduced cost has the wrong sign for a column without a
/// bound. `aty`: A^' y by own columns. `objective`: of a point near the optimum.
double safe_dual_bound(MPI_Comm comm, const LinearModel& model, const PdhgProblem& problem,
                       const std::vector<double>& y, const std::vector<double>& aty, double objective);

}  // namespace rondo
