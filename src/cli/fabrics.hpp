#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "settings.hpp"

/// Topologies by name, file or generator.
namespace rondo::cli {

/// Names of the topologies that come with Rondo, sorted. They lie in jobs/topologies of $RONDO_HOME or of the
/// source tree, or in share/rondo/topologies beside an installed program.
std::vector<std::string> shipped_topologies();

/// "ndv2-2" (shipped), "my/topology.json" (a file) or "torus:dims=8x8,bandwidth_GBps=50" (generated; what is
/// not given takes its default). Throws Error(no_input) for a name that is none of these, and what reading
/// and generating throw.
Topology load_topology(const std::string& spec);

/// --topology, --degrade, --degrade-seed, --without, --seed, --switch-forwarding.
OptionGroup fabric_options();

/// `topology` with --without, --degrade and --switch-forwarding applied. Throws Error(usage).
Topology changed_topology(Topology topology, const Settings& settings);

}  // namespace rondo::cli
