#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "settings.hpp"

/// Topologies by name, file or generator.
namespace rondo::cli {

/// --topology, --degrade, --degrade-seed, --without, --seed, --switch-forwarding.
OptionGroup fabric_options();

/// `topology` with --without, --degrade and --switch-forwarding applied. Throws Error(usage).
Topology changed_topology(Topology topology, const Settings& settings);

}  // namespace rondo::cli
