#pragma once

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Collective. Lower bounds on the finish time of any schedule of the problem, in any number of chunks, best
/// first; of the options lp_solver, symmetry, gap, flow_gap and lp_tolerance count. Throws Error(bad_data)
/// where a GPU cannot be reached.
Bounds bound(const Problem& problem, const RunContext& context);

}  // namespace rondo
