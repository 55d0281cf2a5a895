#pragma once

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Collective. Bounds within their share of a time limit, which may cut them short on one rank later than on
/// another: all take the root's best one of each kind, and the steady-state flow only where all of them have
/// solved it.
Bounds shared_bounds(const Problem& problem, const Toolbox& tools, const RunContext& context);

}  // namespace rondo
