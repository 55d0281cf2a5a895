#pragma once

#include "explore.hpp"

/// The steps of engine `rounds`, in place of explore() and improve().
namespace rondo {

/// Throws Error where rounds or the decomposition asked for do not support the problem.
void check_rounds(const Problem& problem);

/// Collective. What the rounds begin with: the list scheduler's best schedule in as few chunks as lose
/// little, or, with --start none and after the first round, a number of chunks alone.
Exploration explore_for_rounds(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                               const RunContext& context);

/// Collective. The round loop (engines/rounds.hpp), from the incumbent where there is one and after the
/// rounds that are finished; its schedule becomes the incumbent.
void improve_by_rounds(const Problem& problem, const Toolbox& tools, Exploration& exploration, StopRule& rule,
                       const RunContext& context);

}  // namespace rondo
