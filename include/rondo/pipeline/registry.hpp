#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/decomp/decomposition.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"

/// The one place that names concrete engines, formulations and solvers; also feeds --help.
namespace rondo {

struct PdhgOptions;  // rondo/solvers/pdhg.hpp

struct EngineInfo {
  std::string name;
  std::string help;
  std::vector<std::string> policies;  ///< the first one is the default; may be empty
  /// Whether `auto` gives the engine a try on this instance; the options are those that it is prepared with.
  std::function<bool(const Instance&, const EngineOptions&)> applicable;
  /// Estimated work of one call, in sends: what dealing over ranks and the search's budget go by.
  std::function<double(const Demand&, const std::string& policy)> work;
  bool supports_local_search = false;  ///< also where it is asked for by name, not as one of `auto`
  Engine prepare = nullptr;
  bool works_in_rounds = false;  ///< by round_steps.hpp, on all ranks at once; then `prepare` is absent
};

struct DecompositionInfo {
  std::string name;
  std::string help;
  Decompose decompose;
};

/// "list", "queue", "lift", "trees", "flow", "lp", "milp", "rounds"; `auto` is the pipeline's own.
const std::vector<EngineInfo>& engine_registry();
/// Throws Error(usage) listing the known names.
const EngineInfo& find_engine(const std::string& name);
/// "none", "pop", "ncflow".
const std::vector<DecompositionInfo>& decompositions();
/// Throws Error(usage) listing the known names.
const DecompositionInfo& find_decomposition(const std::string& name);

struct LpSolverInfo {
  std::string name;
  std::string help;
};
/// "auto", "clp", "columns", "pdhg".
const std::vector<LpSolverInfo>& lp_solvers();
/// Throws Error(usage) listing the known names.
void check_lp_solver(const std::string& name);
/// `lp_solver`: of what is not solved by columns. The communicator is for solvers that work on all ranks; the
/// toolbox must not outlive it.
Toolbox make_toolbox(const std::string& lp_solver, const Communicator& communicator, PdhgOptions pdhg);
/// CLP for linear programs.
Toolbox make_toolbox();

}  // namespace rondo
