#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"

/// Topologies by name, file or generator.
namespace rondo {

/// Names of the topologies that come with Rondo (jobs/topologies, part of the library), in alphabetical
/// order.
std::vector<std::string> shipped_topologies();

/// "ndv2-2" (shipped), "my/topology.json" (a file) or "torus:dims=8x8,bandwidth_GBps=50" (generated; what is
/// not given takes its default). Throws Error(no_input) for a name that is none of these, Error(bad_data) for
/// a file that is no topology, and what generate_topology() throws.
Topology load_topology(const std::string& spec);

}  // namespace rondo
