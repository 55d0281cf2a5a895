#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rondo/model/toolbox.hpp"
#include "rondo/pipeline/options.hpp"
#include "rondo/pipeline/run_context.hpp"

namespace rondo {

/// A row of lp_solvers(): how linear programs are solved.
struct LpSolverInfo {
  std::string name;
  std::string help;
  LpMethod method = LpMethod::program;
  bool on_all_ranks = false;  ///< there are programs that all ranks have to solve together
  bool solves_parts = true;   ///< a rank can solve the program of a part while others solve theirs
  /// What solves programs that are not solved by columns; must not outlive the context.
  std::function<std::shared_ptr<const Solver>(const SolveOptions&, const RunContext&)> make;
};

/// "auto", "clp", "columns", "pdhg".
const std::vector<LpSolverInfo>& lp_solvers();
/// Throws Error(usage) listing the known names.
const LpSolverInfo& find_lp_solver(const std::string& name);

}  // namespace rondo
