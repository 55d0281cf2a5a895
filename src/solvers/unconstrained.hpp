#pragma once

#include "rondo/model/linear_model.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Solves a model without entries (no rows, no columns, or nothing but zeros) column by column, integer or
/// not. COIN is not asked for these: its answers to them differ from version to version.
Solution solve_unconstrained(const LinearModel& model);

}  // namespace rondo
