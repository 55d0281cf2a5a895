#pragma once

#include "rondo/bounds/bounds.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Collective. A time limit may cut bounds short on one rank later than on another: all take the root's best
/// one of each kind, and the steady-state flow only where all of them have solved it.
void share_bounds(Bounds& bounds, const Communicator& communicator);

}  // namespace rondo
