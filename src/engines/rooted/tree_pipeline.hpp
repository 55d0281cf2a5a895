#pragma once

#include <optional>
#include <vector>

#include "out_tree.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// The rate of a transfer: that of its slowest link; or so much less that all hops together fill the busiest
/// link, and no hop ever waits for another one: what goes over several links at once would leave some of them
/// idle.
enum class HopRates { of_links, of_their_trees };

/// Event-driven list scheduling of chunks along out-trees. The chunks of one tree follow one another evenly
/// over `busy_us`, the time that the links need for all, after which trees end as they are deep; or, with
/// `finish_us`, so that all trees end then. Of what waits for a link goes first what has to leave first in
/// order to be everywhere in time. `tree_of`: per chunk. Nothing where the deadline came first.
std::optional<Schedule> schedule_pipelined(const Topology& topology, const Demand& demand,
                                           const std::vector<OutTree>& trees,
                                           const std::vector<std::size_t>& tree_of, double busy_us,
                                           std::optional<double> finish_us, HopRates rates, int concurrency,
                                           const Deadline& deadline);

}  // namespace rondo
