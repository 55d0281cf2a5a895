#pragma once

#include <cstdint>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "tree_packing.hpp"

namespace rondo {

/// List scheduling of an AllGather along packed trees: the trees say which chunk crosses which way, the
/// scheduler when. Of the chunks that wait for a way the one with the longest time to go below it in its tree
/// goes first; `seed` settles ties. `demand` has as many chunks a contribution as there are trees of a root.
Schedule schedule_trees(const Topology& topology, const TreePacking& packing, const Demand& demand,
                        std::uint64_t seed, int concurrency = kAnyConcurrency);

}  // namespace rondo
