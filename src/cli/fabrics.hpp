#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "settings.hpp"

/// Topologies by name, file or generator.
namespace rondo::cli {

/// --seed of commands that draw nothing but the links of --degrade.
Option degrading_seed();
/// --topology, --degrade, --degrade-seed, --without, --scale-latency, --scale-bandwidth, --switch-forwarding
/// and the command's --seed.
OptionGroup fabric_options(Option seed = degrading_seed());

/// Two nodes of a fabric as an option names them.
struct LinkSelector {
  std::string text;  ///< "c0g3:rail3"
  NodeId a;
  NodeId b;
  double factor = 1;
};
/// "c0g3:rail3,c1g0:rail0", or with a factor each: "c0g3:rail3:0.5". Throws Error(usage).
std::vector<LinkSelector> link_selectors(const std::string& option, const std::string& value,
                                         const Topology& topology, bool with_factor);
/// Both ways. Throws Error(usage) where no link joins them.
std::vector<LinkId> links_of(const Topology& topology, const LinkSelector& selector);

/// `topology` with --without, --degrade, --scale-... and --switch-forwarding applied. Throws Error(usage).
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
