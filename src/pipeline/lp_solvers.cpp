#include "rondo/pipeline/lp_solvers.hpp"

#include "rondo/core/error.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {

// Rows with files of their own.
LpSolverInfo pdhg_lp_solver();

const std::vector<LpSolverInfo>& lp_solvers() {
  const auto clp = [](const SolveOptions&, const RunContext&) { return make_clp_solver(); };
  static const std::vector<LpSolverInfo> rows{
      {.name = "auto",
       .help = "clp, and columns where symmetry leaves more of the steady-state flow than clp is good for",
       .method = LpMethod::by_size,
       .on_all_ranks = true,
       .make = clp},
      {.name = "clp", .help = "simplex, on every rank by itself, whatever the size", .make = clp},
      {.name = "columns",
       .help = "flows, steady or over time, by column generation and first-order steps over all ranks, "
               "proven to a tenth of --gap, at most 0.1%",
       .method = LpMethod::columns,
       .on_all_ranks = true,
       .solves_parts = false,
       .make = clp},
      pdhg_lp_solver(),
  };
  return rows;
}

const LpSolverInfo& find_lp_solver(const std::string& name) {
  std::string known;
  for (const LpSolverInfo& solver : lp_solvers()) {
    if (solver.name == name) return solver;
    known += (known.empty() ? "" : ", ") + solver.name;
  }
  throw Error(ExitCode::usage, "LP solver '" + name + "' is unknown; known are: " + known);
}

}  // namespace rondo
