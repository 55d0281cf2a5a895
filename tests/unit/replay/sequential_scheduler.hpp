#pragma once

#include "rondo/core/random.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// A valid schedule: every (chunk, destination) in random order, from the nearest holder on the shortest path
/// from the origin, as soon as the links of the path are free. No GPU gets a chunk twice, and a GPU gets it
/// only to keep it or to pass it on, so that no send can be missed. `topology` has no shared bandwidth.
Schedule sequential_schedule(const Topology& topology, const Demand& demand, Random& random);

}  // namespace rondo
