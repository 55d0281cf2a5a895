#pragma once

#include "rondo/decomp/orbits.hpp"
#include "rondo/flows/route_table.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// The routes of a time-expanded flow and when its model starts their hops. `instance`: with its grid and
/// intervals; `field`: that of one origin of each orbit of `symmetry`; `delivered`: of all demand, 0 .. 1.
RouteTable timed_routes(const Instance& instance, const FlowField& field, double delivered,
                        const Symmetry& symmetry);

}  // namespace rondo
