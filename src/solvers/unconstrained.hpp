#pragma once

#include "rondo/model/linear_model.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Solves a model without entries (no rows, no columns, or only zeros) column by column, integer or not,
/// because the answers of COIN to such models differ between versions.
Solution solve_unconstrained(const LinearModel& model);

}  // namespace rondo
