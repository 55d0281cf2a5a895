#pragma once

#include <cstdint>
#include <vector>

#include "petsc_matrix.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {

/// The rows and columns that a rank owns, scaled: A^ = R A C, x = C x^ / bound_scale, y = R y^ / cost_scale.
/// C and R by Ruiz and then by Pock and Chambolle (ICCV 2011), after which the norm of A^ is at most 1.
struct PdhgProblem {
  OwnRange own_columns, own_rows;
  OwnColumns columns;                           ///< of A^
  std::vector<double> cost, lower, upper;       ///< by own columns
  std::vector<double> implied_upper;            ///< by own columns; those that some optimal solution keeps
  std::vector<double> row_lower, row_upper;     ///< by own rows
  std::vector<double> column_scale, row_scale;  ///< of own columns, rows
  double cost_scale = 1;
  double bound_scale = 1;
  double cost_norm = 0;  ///< of the model as it was given
  double bound_norm = 0;
};

/// Collective. Columns are dealt in even shares; rows in their order, so that few entries are in rows that
/// another rank owns.
PdhgProblem scaled_problem(MPI_Comm comm, const LinearModel& model);

/// Collective. Tells models from one another; the same on any number of ranks.
std::uint64_t fingerprint(MPI_Comm comm, const LinearModel& model, OwnRange own_columns);

}  // namespace rondo
