#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

/// The one place that names concrete engines, formulations and solvers; also feeds --help.
namespace rondo {

struct EngineInfo {
  std::string name;
  std::string help;
  std::vector<std::string> policies;  ///< the first one is the default; may be empty
  /// Whether `auto` gives the engine a try on this instance.
  std::function<bool(const Instance&)> suits;
  /// Estimated work of one call, in sends: what dealing over ranks and the search's budget go by.
  std::function<double(const Demand&)> work;
  Engine prepare;
};

/// "list", "flow", "lp", "milp"; `auto` is the pipeline's own.
const std::vector<EngineInfo>& engine_registry();
/// Throws Error(usage) listing the known names.
const EngineInfo& find_engine(const std::string& name);
Toolbox make_toolbox();

}  // namespace rondo
