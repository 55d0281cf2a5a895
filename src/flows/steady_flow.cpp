#include "rondo/flows/steady_flow.hpp"

#include <fmt/format.h>

#include "rondo/core/error.hpp"
#include "rondo/flows/flow_parts.hpp"
#include "rondo/flows/route_table.hpp"

namespace rondo {
namespace {

bool takes_columns(const SteadyFlow& steady, const Toolbox& tools) {
  if (!tools.flow_by_columns || tools.solve_in_parts || tools.method == LpMethod::program) return false;
  return tools.method == LpMethod::columns ||
         (steady.columns > kMaxSteadyFlowColumns && steady.all_columns <= kMaxPricedColumns);
}

}  // namespace

SteadyFlow reduce(const Instance& instance, bool use_symmetry, std::size_t most_columns) {
  const Topology& topology = *instance.topology;
  SteadyFlow steady;
  steady.symmetry = trivial_symmetry(topology);
  if (use_symmetry) {
    steady.pattern = demand_pattern(instance.demand);
    steady.symmetry = find_symmetry(topology, steady.pattern);
  }
  if (!instance.demand.is_unicast()) return steady;
  steady.all_columns = contributions_by_origin(instance.demand).size() * topology.num_links();
  steady.columns = steady.all_columns;
  if (steady.symmetry.is_trivial()) return steady;
  std::optional<FlowOrbits> orbits =
      flow_orbits(topology, instance.demand, steady.pattern, steady.symmetry, most_columns);
  if (!orbits) return steady;
  steady.orbits = std::make_shared<const FlowOrbits>(*std::move(orbits));
  steady.columns = 0;
  for (const FlowOrbits::Origin& origin : steady.orbits->origins)
    steady.columns += OrbitTable(origin.link_orbit).size.size();
  return steady;
}

SteadyFlow solve_steady_flow(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                             const SolveLimits& limits) {
  // Parts are not as symmetric; columns price every origin by itself.
  const bool reduces = use_symmetry && !tools.solve_in_parts && tools.method != LpMethod::columns;
  const bool by_size = !tools.solve_in_parts && tools.method == LpMethod::by_size;
  SteadyFlow steady =
      reduce(instance, reduces, by_size ? kMaxSteadyFlowColumns : std::numeric_limits<std::size_t>::max());
  if (!instance.demand.is_unicast()) {
    steady.why_not = "the demand is multicast";
    return steady;
  }
  if (takes_columns(steady, tools)) {
    try {
      FlowByColumns solved = tools.flow_by_columns(instance);
      steady.symmetry = trivial_symmetry(*instance.topology);
      steady.orbits = nullptr;
      steady.field = std::move(solved.field);
      steady.metrics = std::move(solved.metrics);
    } catch (const Error& error) {
      // A limit, on all ranks alike; whoever asked for columns has to know.
      if (error.code() != ExitCode::unavailable || tools.method == LpMethod::columns) throw;
      steady.why_not = error.what();
    }
    return steady;
  }
  if (!tools.solve_in_parts && tools.method != LpMethod::program && steady.columns > kMaxSteadyFlowColumns) {
    steady.why_not = fmt::format("the steady-state flow has more than {} columns", kMaxSteadyFlowColumns);
    return steady;
  }
  Instance reduced = instance;
  reduced.orbits = steady.orbits;
  SolvedFlow solved = solve_flow(reduced, tools.formulation("steady_state_flow"), limits, tools);
  steady.metrics["solver_s"] = solved.largest_part_s;
  if (solved.status == SolveStatus::optimal) {
    steady.field = std::move(solved.field);
  } else {
    steady.why_not =
        fmt::format("the steady-state flow ended '{}' in {}", to_string(solved.status), tools.lp->name());
  }
  return steady;
}

}  // namespace rondo
