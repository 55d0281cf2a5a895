#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// The sends of a decoded multicast MILP, with starts at whole epochs of `tau_us`; earliest transfer first.
std::vector<Send> sends_on_grid(const Topology& topology, const Demand& demand, const FlowField& field,
                                double tau_us);

/// Starts every transfer, in order of the starts of `sends`, as early in continuous time as its links and its
/// chunk allow: where they are those of a grid, none is later than there.
Schedule retime(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
