#pragma once

#include "rondo/pipeline/synthesize.hpp"

/// Sums whose parts are not all there at 0.
namespace rondo {

/// The same problem with all sums ready at 0.
Problem on_time(const Problem& problem);

/// Collective. Solves the problem as if all were there at 0, by the engine asked for or by auto and, of sums
/// that several want, by each engine that adds up in other ways; what each finds is timed anew with the ready
/// times, in its own order (core/retiming.hpp) and in that of what is there (core/interleaving.hpp). The best
/// counts; the bound is that of the late problem.
SynthesisResult synthesize_late_sums(const Problem& problem, const RunContext& context);

}  // namespace rondo
