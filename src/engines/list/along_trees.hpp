#pragma once

#include <optional>

#include "list_rules.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Whether some GPU has data for several others, each its own: what schedule_along_trees() is for.
bool may_go_along_trees(const Demand& demand);

/// A schedule of unicast demand in few messages: every GPU's data for others is scheduled by the rules as if
/// it were one datum for all of them, and each then goes over its way in the tree of that datum, in the same
/// transfers. So AllToAll takes as many messages as AllGather (Bruck et al., IEEE TPDS 1997, in both). Wins
/// where messages cost more than bytes. Nothing where `deadline` is over first.
std::optional<Schedule> schedule_along_trees(const Topology& topology, const HopTable& hops,
                                             const Demand& demand, const ListRules& rules,
                                             const Deadline& deadline);

}  // namespace rondo
