#pragma once

#include <vector>

#include "petsc_matrix.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {

/// The rows and columns that a rank owns, scaled: A^ = R A C, x = C x^ / bound_scale, y = R y^ / cost_scale.
/// C and R by Ruiz and then by Pock and Chambolle (ICCV 2011), after which the norm of A^ is at most 1.
struct PdhgProblem {
  OwnRange own_columns, own_rows;
  OwnRows rows;                                 ///< of A^
  std::vector<double> cost, lower, upper;       ///< by own columns
  std::vector<double> row_lower, row_upper;     ///< by own rows
  std::vector<double> column_scale, row_scale;  ///< of own columns, rows
  double cost_scale = 1;
  double bound_scale = 1;
  double cost_norm = 0;  ///< of the model as it was given
  double bound_norm = 0;
};

/// Collective.
PdhgProblem scaled_problem(MPI_Comm comm, const LinearModel& model);

struct ColumnBounds {
  std::vector<double> lower, upper;  ///< one a column of the model
};

/// Collective. Bounds of the columns that the rows and cost'x <= cutoff imply, where the model has none.
ColumnBounds implied_bounds(MPI_Comm comm, const LinearModel& model, OwnRange own_rows, double cutoff);

/// One sweep over rows of the model: tightens infinite bounds; returns whether any became finite.
bool tighten(const OwnRows& rows, const std::vector<double>& row_lower, const std::vector<double>& row_upper,
             ColumnBounds& bounds);

/// The model's rows of a range.
OwnRows rows_of(const LinearModel& model, OwnRange range);

}  // namespace rondo
