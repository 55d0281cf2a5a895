#pragma once

#include "explore.hpp"
#include "rondo/bounds/bounds.hpp"

/// Collectives that combine data, by what makes schedules of multicast demand.
namespace rondo {

/// The transposed problem of sums for one GPU each, what is done instead, or of unicast demand
/// (core/transposition.hpp).
Problem transposed(const Problem& problem);
/// Its result, run backwards: a schedule and a bound of `problem`, replayed.
SynthesisResult reversed_in_time(const Problem& problem, SynthesisResult result);

/// Throws Error(unavailable) where the engine asked for knows no sums for several GPUs each (AllReduce).
void check_all_reduction(const Problem& problem);

/// Collective. For sums for several GPUs each: in halves, first to one GPU each, then from there to all that
/// want them, by the whole main job for each half; and by the engines that combine, unless the halves end
/// near enough to the bound.
Exploration explore_all_reduction(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                  StopRule& rule, const RunContext& context);

}  // namespace rondo
