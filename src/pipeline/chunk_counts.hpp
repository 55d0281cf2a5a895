#pragma once

#include <vector>

#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Into how many chunks contributions are split. Pure, as portfolio.hpp.
namespace rondo {

/// Into how many chunks improvement and rounds may split a contribution of `demand`, whatever the work; at
/// least 1.
int most_chunks_of_improvement(const Demand& demand, const SolveOptions& options);

/// Chunk counts worth a try for `demand` of one chunk a contribution: 1, 2, 4, ... and the largest one that
/// keeps chunks at the least bytes and the schedule at 400,000 sends; options.chunks alone where it is set.
/// Ascending, never empty.
std::vector<int> chunk_counts(const Demand& demand, const SolveOptions& options);

/// Those of one engine: where it cuts contributions into pieces, multiples of them; with those that it found.
std::vector<int> chunk_counts_of(const EngineInfo& engine, const Demand& demand, const SolveOptions& options);

/// Into how many chunks an engine that pipelines may split contributions in the end.
int most_pipelined_chunks(const EngineInfo& engine, const Demand& demand, const SolveOptions& options);

/// Numbers of chunks that an engine tries after a schedule of `kept` chunks: as many as that has and more, or
/// the most that are affordable. Ascending.
std::vector<int> counts_after_kept(const EngineInfo& engine, int kept, const Demand& demand,
                                   const SolveOptions& options);

}  // namespace rondo
