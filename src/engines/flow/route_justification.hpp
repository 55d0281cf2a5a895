#pragma once

#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/model/deadline.hpp"
#include "route_scheduling.hpp"

namespace rondo {

/// The same routes with other starts: a forward pass in the order of the latest starts that a backward pass
/// leaves (justification.hpp). Both fill gaps, where list scheduling decides in the order of time: a link
/// whose chunks take longer than those of others is free when its neighbours are not, and waits for them.
/// `starts` itself where that ends no earlier, or `deadline` is over before.
RouteStarts justified(RouteStarts starts, const Topology& topology, const std::vector<Hop>& hops,
                      const Demand& demand, const RoutedChunks& routed, int concurrency,
                      const Deadline& deadline = {});

}  // namespace rondo
