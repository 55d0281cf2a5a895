#pragma once

#include <functional>

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Whether a gap is worth no second search.
bool is_near(double gap, const SolveOptions& options);
/// Adds to the report of two searches' earlier schedule what the other one tried, and the time that it took.
void add_what_was_done(SynthesisResult& kept, SynthesisResult& other);

/// Whether all data comes from one GPU or goes to one, engines may choose, and the problem run backwards on
/// the transposed topology has the same schedules (core/transposition.hpp): Scatter is Gather then.
bool may_be_turned(const Problem& problem);

/// Collective. What `solve` makes of the problem and, where that is not near the bound, of the transposed one
/// run backwards: the earlier of the two. Schedulers that go forwards in time do better where data comes
/// together, or where it spreads; which of the two depends on the fabric. A time limit is shared.
SynthesisResult solve_both_ways(const Problem& problem, const RunContext& context,
                                const std::function<SynthesisResult(const Problem&)>& solve);

}  // namespace rondo
