#include "rondo/pipeline/registry.hpp"

#include "rondo/core/error.hpp"
#include "rondo/engines/route.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {
// The engines: each one's row stands in its own file.
EngineInfo list_engine();
EngineInfo queue_engine();
EngineInfo trees_engine();
EngineInfo flow_engine();
EngineInfo lp_engine();
EngineInfo milp_engine();
EngineInfo rounds_engine();
EngineInfo spanning_engine();
EngineInfo steiner_engine();
EngineInfo rooted_engine();
EngineInfo leaves_engine();
EngineInfo ring_engine();
EngineInfo tree_engine();
EngineInfo direct_engine();
EngineInfo recursive_engine();
EngineInfo bruck_engine();
EngineInfo hierarchical_engine();
EngineInfo exchange_engine();
EngineInfo steps_engine();
EngineInfo switch_engine();

const std::vector<EngineInfo>& engine_registry() {
  static const std::vector<EngineInfo> engines{
      list_engine(),        queue_engine(),        trees_engine(),    flow_engine(),    lp_engine(),
      milp_engine(),        rounds_engine(),       spanning_engine(), steiner_engine(), rooted_engine(),
      leaves_engine(),      ring_engine(),         tree_engine(),     direct_engine(),  recursive_engine(),
      bruck_engine(),       hierarchical_engine(), exchange_engine(), steps_engine(),   switch_engine(),
      route_engine(nullptr)};
  return engines;
}

const EngineInfo& find_engine(const std::string& name) {
  std::string known = "auto";
  for (const EngineInfo& engine : engine_registry()) {
    if (engine.name == name) return engine;
    known += ", " + engine.name;
  }
  throw Error(ExitCode::usage, "engine '" + name + "' is unknown; known are: " + known);
}

const EngineInfo& find_engine_or_auto(const std::string& name) {
  static const EngineInfo portfolio{.name = "auto",
                                    .help = "a portfolio of engines over all ranks",
                                    .supports_local_search = true,
                                    .traits = kContinuousTime};
  return name == portfolio.name ? portfolio : find_engine(name);
}

std::optional<EngineInfo> sketched_engine(const std::string& name, std::shared_ptr<const Sketch> sketch) {
  EngineInfo row = route_engine(std::move(sketch));
  if (row.name != name) return std::nullopt;
  return row;
}

Toolbox make_toolbox() {
  return {all_formulations(),     make_clp_solver(),     make_cbc_solver(),
          make_clp_column_master, make_cadical_solver(), make_clp_solver()};
}

}  // namespace rondo
