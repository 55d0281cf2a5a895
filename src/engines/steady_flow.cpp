#include "rondo/engines/steady_flow.hpp"

#include <fmt/format.h>

#include "route_table.hpp"

namespace rondo {

SteadyFlow reduce(const Instance& instance, bool use_symmetry) {
  const Topology& topology = *instance.topology;
  SteadyFlow steady;
  steady.symmetry = trivial_symmetry(topology);
  if (use_symmetry) {
    steady.pattern = demand_pattern(instance.demand);
    steady.symmetry = find_symmetry(topology, steady.pattern);
  }
  if (!instance.demand.is_pairwise()) return steady;
  steady.all_columns = contributions_by_origin(instance.demand).size() * topology.num_links();
  steady.columns = steady.all_columns;
  if (steady.symmetry.is_trivial()) return steady;
  steady.orbits = std::make_shared<const FlowOrbits>(
      flow_orbits(topology, instance.demand, steady.pattern, steady.symmetry));
  steady.columns = 0;
  for (const FlowOrbits::Origin& origin : steady.orbits->origins)
    steady.columns += OrbitTable(origin.link_orbit).size.size();
  return steady;
}

SteadyFlow solve_steady_flow(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                             const SolveLimits& limits, std::size_t most_columns) {
  SteadyFlow steady = reduce(instance, use_symmetry);
  if (!instance.demand.is_pairwise()) {
    steady.why_not = "the demand is multicast";
    return steady;
  }
  if (steady.columns > most_columns) {
    steady.why_not =
        fmt::format("the steady-state flow of {} columns is beyond {}", steady.columns, most_columns);
    return steady;
  }
  Instance reduced = instance;
  reduced.orbits = steady.orbits;
  const BuiltModel built = tools.steady_state_flow(reduced);
  const Solution solution = tools.lp->solve(built.model, limits);
  if (solution.status == SolveStatus::optimal) {
    steady.field = built.decode(solution);
  } else {
    steady.why_not =
        fmt::format("the steady-state flow ended '{}' in {}", to_string(solution.status), tools.lp->name());
  }
  return steady;
}

}  // namespace rondo
