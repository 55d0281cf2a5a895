#pragma once

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/route_table.hpp"

namespace rondo {

/// Of every contribution of unicast demand, routes of one hop: paths through switches alone with at most one
/// link more than the fewest, those with the fewest first, at most eight. Where the paths with the fewest
/// links have few of the links, the others spread the load. None of a contribution that GPUs have to relay.
RouteTable routes_with_detours(const Topology& topology, const Demand& demand);

}  // namespace rondo
