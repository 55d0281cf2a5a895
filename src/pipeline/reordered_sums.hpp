#pragma once

#include "explore.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Collective. Puts the transfers of sums for several GPUs each into an order of their own on every link, by
/// which what is added up early is spread while the rest is still added up; then the same in chunks of half
/// the bytes, as long as that ends earlier, chunks may be so small and time is left. `best` becomes what ends
/// earliest, as the replay says.
void reorder_sums(const Problem& problem, Incumbent& best, const RunContext& context);

}  // namespace rondo
