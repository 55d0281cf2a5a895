#pragma once

#include "runs.hpp"

namespace rondo::soak {

/// Adds a campaign to the file, which holds one entry a piece: what was run, what came of it. A piece of the
/// same campaign, problem and seed is replaced.
void add_to_results(const fs::path& file, const std::string& name, const Campaign& campaign, int seed,
                    const Tally& tally, double seconds);

}  // namespace rondo::soak
