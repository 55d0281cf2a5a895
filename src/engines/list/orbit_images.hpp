#pragma once

#include <vector>

#include "orbit_hops.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// The images of all moves under all automorphisms of the group, in the order of schedules. The chunk of a
/// move is numbered as the receiver's representative sees it: (o * chunks + k) * order + e is the k-th chunk
/// of element e of orbit o.
Schedule images_of(const std::vector<Move>& moves, const Topology& topology, const FreeGroup& group,
                   const OrbitHops& hops, const Demand& demand);

}  // namespace rondo
