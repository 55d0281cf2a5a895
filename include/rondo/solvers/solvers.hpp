#pragma once

#include <memory>

#include "rondo/model/column_master.hpp"
#include "rondo/model/satisfiability.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// COIN-OR CLP, continuous models.
std::shared_ptr<const Solver> make_clp_solver();
/// The master of a column generation, in CLP.
std::unique_ptr<ColumnMaster> make_clp_column_master(int num_rows, int num_blocks);
/// COIN-OR CBC, integer models.
std::shared_ptr<const Solver> make_cbc_solver();
/// CaDiCaL, formulas in conjunctive normal form.
std::shared_ptr<const SatSolver> make_cadical_solver();

}  // namespace rondo
