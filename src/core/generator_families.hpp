#pragma once

#include "rondo/core/generators.hpp"

/// The families. A new one is a function in a file of its own, its declaration here and its place in the list
/// below.
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

/// In the order that `rondo topology list` shows.
inline std::vector<TopologyGenerator> all_families() {
  return {ring_family(), mesh_family(),  torus_family(),    hypercube_family(), full_family(),
          star_family(), rails_family(), fat_tree_family(), dragonfly_family()};
}

}  // namespace rondo
