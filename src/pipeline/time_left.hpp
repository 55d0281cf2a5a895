#pragma once

#include <optional>

#include "explore.hpp"

/// Of `auto` with a time limit: rounds in windows, in turn with local search.
namespace rondo {

/// Collective. The share of the time limit at which local search makes way for rounds; 1 where none follow.
double share_before_rounds(const Problem& problem, const Incumbent& best, const StopRule& rule,
                           const RunContext& context);

/// Collective. Rounds in windows and local search in the time that is left, each from the best schedule, and
/// rounds from `listed`, what local search began with: a turn goes to the one that gained more in a second,
/// until all are in vain.
void improve_in_turn(const Problem& problem, const Toolbox& tools, const std::optional<Incumbent>& listed,
                     Incumbent& best, StopRule& rule, const RunContext& context);

}  // namespace rondo
