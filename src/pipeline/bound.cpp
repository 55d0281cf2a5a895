#include "rondo/pipeline/bound.hpp"

namespace rondo {

Bounds bound(const Problem& problem, const RunContext& context) {
  check_reachable(*problem.topology, problem.demand);
  const Toolbox tools = prepare_toolbox(problem.options, context);
  return lower_bounds(problem.instance(), tools, problem.options.symmetry);
}

}  // namespace rondo
