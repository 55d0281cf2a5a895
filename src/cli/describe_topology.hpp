#pragma once

#include <string>

#include "rondo/core/topology.hpp"

namespace rondo::cli {

/// "ndv2-2: 16 GPUs, 1 switch, 68 links".
std::string topology_line(const Topology& topology);

/// The line, the source, nodes by chassis, and the links by class (ends, bandwidth, latency).
std::string describe_topology(const Topology& topology);

}  // namespace rondo::cli
