#pragma once

#include <atomic>

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Collective. The best schedule that the engines find, on every rank: candidates (engine, chunk count,
/// policy, seed; see portfolio.hpp) are dealt over the ranks batch by batch, only finish times travel, and
/// the winner at the end, which is then improved (improvement.hpp). Ends at the gap asked for, at a limit, or
/// when varying the best finds nothing more. The same on any number of ranks. Offers its state to
/// `checkpoints` after every batch and goes on from the newest one. Throws Error(unavailable) where a limit
/// came before any schedule.
SynthesisResult search_best(const Instance& instance, const SolveOptions& options, const Bounds& bounds,
                            const Toolbox& tools, const Communicator& communicator, const Progress& progress,
                            const std::atomic<bool>* interrupt, Checkpoints& checkpoints);

}  // namespace rondo
