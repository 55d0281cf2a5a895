#pragma once

#include <vector>

#include "rondo/pipeline/options.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// What engine steps is asked: how many steps and rounds.
namespace rondo {

std::vector<SolveOption> step_options();

/// Throws Error(usage) where the question is not whole, or contradicts itself; other engines ask none.
void check_steps(const Problem& problem);

}  // namespace rondo
