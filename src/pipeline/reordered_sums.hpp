#pragma once

#include <cstddef>

#include "explore.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// Collective. Whether the time limit leaves as long as putting so many sends into another order may take,
/// and nothing interrupts.
bool has_time_for_sums(const Problem& problem, std::size_t sends, const RunContext& context);

/// Collective. Puts the transfers of sums for several GPUs each into an order of their own on every link, by
/// which what is added up early is spread while the rest is still added up; then the same in chunks of half
/// the bytes, as long as that ends earlier, chunks may be so small and time is left. `best` becomes what ends
/// earliest, as the replay says.
void reorder_sums(const Problem& problem, Incumbent& best, const RunContext& context);

}  // namespace rondo
