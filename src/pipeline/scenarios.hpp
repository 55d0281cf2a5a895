#pragma once

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Throws Error for options that do not fit problem.scenarios, or one of its fabrics.
void check_scenarios(const Problem& problem);

/// Collective. Solves the problem on each fabric, and on the one that has the worst of each link; times each
/// schedule on all fabrics, dealt over the ranks, and takes the best by the objective. Throws
/// Error(unavailable) where none goes on all of them.
SynthesisResult synthesize_for_scenarios(const Problem& problem, const RunContext& context);

}  // namespace rondo
