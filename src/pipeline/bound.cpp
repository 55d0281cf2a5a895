#include "rondo/pipeline/bound.hpp"

#include "combining.hpp"
#include "rondo/core/transposition.hpp"

namespace rondo {

Bounds bound(const Problem& problem, const RunContext& context) {
  check_reachable(*problem.topology, problem.demand);
  if (problem.demand.kind() == DemandKind::reduction) {
    Bounds bounds = bound(transposed(problem), context);
    for (LowerBound& each : bounds.all) each.certificate = transposed(std::move(each.certificate));
    return bounds;
  }
  const Toolbox tools = prepare_toolbox(problem.options, context);
  return lower_bounds(problem.instance(), tools, problem.options.symmetry);
}

}  // namespace rondo
