#pragma once

#include "explore.hpp"

namespace rondo {

/// Of --improve-work, what is spent on a kept schedule before others are tried.
inline constexpr double kShareOfKept = 0.1;

/// Of --improve-work, what is spent after all engines: all of it, but less on a kept schedule, which most
/// times is near.
double share_of_work(const Problem& problem);

/// Collective. Local search over plans (local_search/improvement.hpp) from the portfolio's best schedules,
/// and restarts of list scheduling in more chunks; what ends earlier becomes the incumbent. An AllGather of
/// equal parts on a symmetric fabric is improved among symmetric plans (orbit_plans.hpp) first. Where the
/// best schedule is far from the bound and of a quick engine, it begins with what others found, and with that
/// one if this ends no earlier. Does nothing where the engine asked for is not one that local search follows,
/// or --improve-work is 0. Keeps states as explore() does. Spends `share` of --improve-work each time, and
/// ends when `until` of the time limit is over.
void improve(const Problem& problem, EngineRunner& runner, Exploration& exploration, StopRule& rule,
             const RunContext& context, double share, double until = 1);

/// Collective. With a time limit, local search from the incumbent alone until this share of it is over, of
/// other neighbours than with another `number`.
void improve_further(const Problem& problem, Incumbent& best, StopRule& rule, const RunContext& context,
                     double until, std::uint64_t number);

}  // namespace rondo
