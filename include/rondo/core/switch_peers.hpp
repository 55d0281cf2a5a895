#pragma once

#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// How far after it, among the GPUs of a switch in their order and around, those stand that a GPU may send
/// to: 1, b, b^2 and so on with the least b for which `peers` digits to base b name every distance; so each
/// GPU is reached over at most (b - 1) peers GPUs. `peers` of them, ascending; all where there are no more.
std::vector<int> peer_distances(int gpus, int peers);

/// The fabric in which a GPU sends over each switch to `peers` GPUs alone, and hears from as many. What such
/// a port gives falls with the number of its peers (TACCL, figure 4), so that large data go faster among few.
/// Every switch that joins GPUs stands once for each sender; the copies of a link to a GPU have its
/// bandwidth together. Switches with no more other GPUs than `peers` stay as they are.
/// Throws Error(usage) where the fabric has no switch, Error(unavailable), naming it, for a switch to be
/// restricted that is linked with a switch, adds, or has a link whose bandwidth changes.
Topology with_switch_peers(const Topology& topology, int peers);

}  // namespace rondo
