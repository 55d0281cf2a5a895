#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/rounding.hpp"

namespace rondo {

/// A flow is a schedule: with T the greatest load, the chunks of a contribution that take the same route flow
/// over it together at bytes / T from the time at which they are ready, so that nothing on a link adds up to
/// more than its bandwidth, and end T later; chunk by chunk where GPUs relay them. Any number of transfers
/// are on a link at a time. Not for links with message costs.
Schedule at_constant_rates(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                           const RoutedChunks& routed);

}  // namespace rondo
