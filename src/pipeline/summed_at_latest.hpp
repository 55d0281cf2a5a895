#pragma once

#include <optional>

#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Sums that one GPU holds up.
namespace rondo {

/// Collective. `problem` is on time, `late` the same demand with ready times. What the others have is added
/// up at the latest GPU until its part is there; then that spreads the sums. Timed with the ready times, not
/// replayed. Nothing where sums are not for the same several GPUs each.
std::optional<SynthesisResult> summed_at_latest(const Problem& problem, const Demand& late,
                                                const RunContext& context);

}  // namespace rondo
