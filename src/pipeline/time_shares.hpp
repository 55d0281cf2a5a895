#pragma once

#include <algorithm>
#include <optional>

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

/// Collective. The time limit of the next of `parts` that share what is left; absent where there is none.
inline std::optional<double> time_limit_of_part(const SolveOptions& options, const RunContext& context,
                                                std::size_t parts) {
  if (!options.time_limit_s) return std::nullopt;
  const double now_s = context.seconds();
  return now_s + std::max(0.0, *options.time_limit_s - now_s) / static_cast<double>(parts);
}

}  // namespace rondo
