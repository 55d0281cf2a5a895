#pragma once

#include <optional>

#include "engine_runner.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// The candidate that won, and the rank that may have its result.
struct Winner {
  const Candidate& candidate;
  int rank = 0;
};

/// Collective. This rank's part of the winner's schedule, `mine` on the rank that has it and null elsewhere,
/// where it leaves no sends; nothing where the schedule stays whole. A folded one each rank makes for itself
/// and unfolds its part of.
std::optional<Schedule> share_of(const Winner& winner, EngineResult* mine, const Problem& problem,
                                 EngineRunner& runner, const RunContext& context);

}  // namespace rondo
