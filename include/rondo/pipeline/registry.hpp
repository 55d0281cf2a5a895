#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

/// The engines and formulations by name; also feeds --help. LP solvers: lp_solvers.hpp; decompositions:
/// rondo/decomp/decomposition.hpp.
namespace rondo {

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

/// "list", "queue", "lift", "trees", "flow", "lp", "milp", "rounds"; `auto` is the pipeline's own.
const std::vector<EngineInfo>& engine_registry();
/// Throws Error(usage) listing the known names.
const EngineInfo& find_engine(const std::string& name);

/// The formulations, CLP for linear programs, CBC for integer ones.
Toolbox make_toolbox();

}  // namespace rondo
