#pragma once

#include <optional>
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

/// The schedule, with other starts where GPUs have too little memory for what they only pass on; nothing
/// where none are found.
std::optional<Schedule> in_memory(const Topology& topology, const Demand& demand, Schedule schedule);

/// The sends of a schedule that the grid allows, without those that serve nothing, as early as can be. Where
/// memory of relays is limited, which other starts may not fit, it may keep the grid's times.
Schedule retimed_from_grid(const Topology& topology, const Demand& demand, std::span<const Send> on_grid);

}  // namespace rondo
