#pragma once

#include "rondo/core/generators.hpp"

namespace rondo {

// generators_direct.cpp: GPUs linked to GPUs
TopologyGenerator ring_family();
TopologyGenerator mesh_family();
TopologyGenerator torus_family();
TopologyGenerator hypercube_family();
TopologyGenerator full_family();

// generators_switched.cpp: GPUs behind switches
TopologyGenerator star_family();
TopologyGenerator rails_family();
TopologyGenerator fat_tree_family();
TopologyGenerator dragonfly_family();

}  // namespace rondo
