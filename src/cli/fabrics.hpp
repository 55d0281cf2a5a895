#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "settings.hpp"

/// Topologies by name, file or generator.
namespace rondo::cli {

/// --seed of commands that draw nothing but the links of --degrade.
Option degrading_seed();
/// --topology, --degrade, --degrade-seed, --without, --switch-forwarding and the command's --seed.
OptionGroup fabric_options(Option seed = degrading_seed());

/// `topology` with --without, --degrade and --switch-forwarding applied. Throws Error(usage).
Topology changed_topology(Topology topology, const Settings& settings);

/// What --sketch leaves of it. Throws Error.
Topology sketched_topology(Topology topology, const Settings& settings);

/// What --topology or --profile names, unchanged.
Topology named_topology(const Settings& settings);
/// With what the options change, but for --sketch.
Topology whole_fabric(const Settings& settings);

/// The fabric that the options ask for. Throws Error.
Topology fabric_of(const Settings& settings);

}  // namespace rondo::cli
