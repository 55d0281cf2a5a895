#pragma once

#include "rondo/model/formulation.hpp"

/// The formulations; each has the signature of `Formulation`. registry.cpp wires them to the engines.
namespace rondo {

/// Least time T in which a steady flow by origin carries pairwise demand: minimise T subject to conservation and
/// sum over origins of bytes on a link <= bandwidth x T (maximum concurrent flow). Shared bandwidth is a constraint
/// unless `instance.demand` ... see steady_state_flow.cpp. Decodes bytes by origin GPU and link, and link prices (the
/// duals of the capacities, scaled so that sum of bandwidth x price = 1).
BuiltModel steady_state_flow(const Instance& instance);

/// Time-expanded flow by origin on the instance's grid (TE-CCL, section 4.1 and appendix A).
BuiltModel time_expanded_flow(const Instance& instance);

/// Multicast with copy on the instance's grid, chunk by chunk (TE-CCL, section 3, appendices A and F).
BuiltModel multicast_milp(const Instance& instance);

}  // namespace rondo
