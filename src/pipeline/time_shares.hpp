#pragma once

#include <algorithm>

#include "rondo/model/solver.hpp"
#include "rondo/pipeline/options.hpp"
#include "rondo/pipeline/run_context.hpp"

/// Who may take how much of a time limit, so that there is a schedule at its end. Shares are of the time that
/// is left when a step begins.
namespace rondo {

inline constexpr double kShareOfBounds = 0.4;
/// What engines do once for a problem, such as linear programs; the rest is for schedules.
inline constexpr double kShareOfPreparing = 0.6;
/// Replaying a schedule, writing it and reading it back take about so much a send.
inline constexpr double kClosingSecondsPerSend = 3e-6;

/// The interrupt, and a share of the time that is left.
inline SolveLimits limits_of_step(const SolveOptions& options, const RunContext& context, double share) {
  SolveLimits limits;
  limits.interrupt = context.interrupt;
  if (options.time_limit_s)
    limits.time_limit_s = share * std::max(0.0, *options.time_limit_s - context.clock.seconds());
  return limits;
}

}  // namespace rondo
