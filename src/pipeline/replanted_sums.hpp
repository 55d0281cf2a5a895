#pragma once

#include "explore.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "stop_rule.hpp"

namespace rondo {

/// Collective. Local search over a schedule of sums for all GPUs as a whole
/// (rondo/local_search/replanting_sums.hpp), within the work and time that the options allow. `best` becomes
/// what it finds, if that ends earlier, as the replay says.
void replant_sums(const Problem& problem, Incumbent& best, StopRule& rule, const RunContext& context);

}  // namespace rondo
