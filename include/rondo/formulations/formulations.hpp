#pragma once

#include "rondo/model/formulation.hpp"

/// The formulations; each has the signature of `Formulation`. registry.cpp wires them to the engines.
namespace rondo {

/// Least time T in which a steady flow by origin carries pairwise demand: minimise T subject to conservation
/// and sum over origins of bytes on a link <= bandwidth x T, the same for groups of shared bandwidth (maximum
/// concurrent flow). Decodes bytes by origin GPU and link, and link prices: the duals of the link capacities,
/// >= 0 (without shared bandwidth, sum of bandwidth x price = 1 up to the unit).
BuiltModel steady_state_flow(const Instance& instance);

/// Time-expanded flow by origin on the instance's grid (TE-CCL, section 4.1 and appendix A).
BuiltModel time_expanded_flow(const Instance& instance);

/// Multicast with copy on the instance's grid, chunk by chunk (TE-CCL, section 3, appendices A and F).
BuiltModel multicast_milp(const Instance& instance);

}  // namespace rondo
