#pragma once

#include "rondo/model/formulation.hpp"
#include "rondo/model/round_model.hpp"
#include "rondo/model/toolbox.hpp"

/// The formulations: a file each in src/formulations, and a row in all_formulations(), from which engines
/// take them by name.
namespace rondo {

/// Least time T in which a steady flow by origin carries unicast demand: minimise T subject to conservation
/// and sum over origins of bytes on a link <= bandwidth x T, the same for groups of shared bandwidth (maximum
/// concurrent flow). Decodes bytes by origin GPU and link, and link prices: the duals of the link capacities,
/// >= 0 (without shared bandwidth, sum of bandwidth x price = 1 up to the unit).
BuiltModel steady_state_flow(const Instance& instance);

/// Time-expanded flow by origin on the K = num_epochs epochs of the instance's grid (TE-CCL, section 4.1 and
/// appendix A), for unicast demand: minimise -(fraction of all demand delivered by the end of epoch K - 1),
/// at most 1. Data is fluid: in each epoch a link carries up to bandwidth x tau. A GPU can send the data that
/// it receives 1 + ceil(latency / tau) epochs later, or at any later time. A switch holds nothing: data that
/// enters a cut-through switch leaves it within the same epoch, and its latency is counted on the link into
/// the next GPU. Decodes bytes by origin GPU, link and epoch, and the landing times; `finish_us` is the time
/// at which the last bytes have landed.
BuiltModel time_expanded_flow(const Instance& instance);

/// Multicast with copy on the instance's grid, chunk by chunk: feasible exactly when the demand can be met by
/// the end of the grid (TE-CCL, section 3, appendices A and F; no objective, see multicast_milp.cpp). Data
/// does not wait in switches, buffered or not. Decodes transfers in order: the link out of a GPU, then
/// depth-first the links that continue it through switches, all with the chunk and the epoch in which the
/// transfer starts. Throws Error(unavailable) beyond 2,000,000 columns or 100,000 paths through switches.
BuiltModel multicast_milp(const Instance& instance);

/// One round of TE-CCL's A* technique (section 4.2, appendix D) for one part of a topology: chooses which
/// chunk starts on which path in which epoch, so that destinations are reached early and chunks that do not
/// reach theirs come nearer by alpha-beta distance (see look_ahead_round.cpp). Always feasible: sending
/// nothing is a solution.
BuiltRound look_ahead_round(const RoundProblem& problem);

inline Formulations all_formulations() {
  return Formulations({{"steady_state_flow", steady_state_flow},
                       {"time_expanded_flow", time_expanded_flow},
                       {"multicast_milp", multicast_milp},
                       {"look_ahead_round", look_ahead_round}});
}

}  // namespace rondo
