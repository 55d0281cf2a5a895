#pragma once

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// synthesize() for the engine `rounds`, whose rounds are partitioned over the ranks and kept in `store`. The
/// plan that they start from is what synthesize() finds with the engine `list`.
SynthesisResult synthesize_rounds(std::shared_ptr<const Topology> topology, const Demand& demand,
                                  const SolveOptions& options, const Communicator& communicator,
                                  const Progress& progress, const std::atomic<bool>* interrupt,
                                  const RunStore& store);

}  // namespace rondo
