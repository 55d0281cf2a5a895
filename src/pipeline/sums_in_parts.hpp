#pragma once

#include <optional>

#include "explore.hpp"
#include "grouping.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "search_state.hpp"

/// Sums for several GPUs each from schedules of what they are made of, each by the whole main job.
namespace rondo {

/// Collective. In halves (halves.hpp); nothing where other shapes are asked, or --chunks is no multiple of
/// the GPUs. With `overlap` they are to be put in an order in which they do: less local search, and no more
/// chunks than that has time for.
std::optional<Incumbent> solve_in_halves(const Problem& problem, bool overlap, const RunContext& context);

/// Collective. In groups (grouped_sums.hpp). Unless chunks are asked for, slices follow of one chunk a part,
/// or, with `in_any`, of as many as are best without them. Nothing where that does not work.
std::optional<Incumbent> solve_in_groups(const Problem& problem, const Grouping& grouping, bool in_any,
                                         const RunContext& context);

}  // namespace rondo
