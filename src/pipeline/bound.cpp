#include "rondo/pipeline/bound.hpp"

#include "without_relays.hpp"

namespace rondo {

Bounds bound(const Problem& problem, const RunContext& context) {
  check_reachable(*problem.topology, problem.demand);
  if (problem.demand.forbids_relays()) return of_whole_fabric(problem, bound(on_members(problem), context));
  const Toolbox tools = prepare_toolbox(problem.options, context);
  return lower_bounds(problem.instance(), tools, problem.options.symmetry);
}

}  // namespace rondo
