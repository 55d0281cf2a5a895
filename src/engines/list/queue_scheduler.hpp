#pragma once

#include <optional>
#include <vector>

#include "list_rules.hpp"
#include "orbit_hops.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// List scheduling of an AllGather (every GPU has one contribution of equal size for all others) in
/// continuous time, event by event, by the rules of list_rules.hpp, without shared bandwidth. Every hop has a
/// queue of the chunks that it could carry, so that a decision scans neither chunks nor GPUs.
///
/// One decision holds for all automorphisms of the group: what the representative of an orbit of GPUs does
/// with a chunk, every other GPU of the orbit does at the same time with the image of that chunk. With the
/// trivial group each GPU is a representative.
///
/// The result is the moves of the representatives; OrbitImages is the schedule of them. Nothing where
/// `deadline` is over first. `hops` has to be of `topology` and `group`. Throws Error(unavailable) where the
/// hops do not reach every GPU.
std::optional<std::vector<Move>> representative_moves(const Topology& topology, const FreeGroup& group,
                                                      const OrbitHops& hops, const Demand& demand,
                                                      const ListRules& rules, const Deadline& deadline);

}  // namespace rondo
