#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/io/machine.hpp"

/// Topologies by name, file or generator.
namespace rondo {

/// Names of the topologies that come with Rondo (jobs/topologies, part of the library), in alphabetical
/// order.
std::vector<std::string> shipped_topologies();

/// Names of the machines that come with Rondo (jobs/machines), in alphabetical order.
std::vector<std::string> shipped_machines();
/// "dgx-h100" (shipped) or a file: XML of NCCL_TOPO_DUMP_FILE or the output of nvidia-smi. Throws
/// Error(no_input) for a name that is neither, Error(bad_data) for a file that is no machine.
Machine load_machine(const std::string& spec);

/// "ndv2-2" (shipped), "my/topology.json" (a file), "dgx-h100" or "node.xml" (a machine alone) or
/// "torus:dims=8x8,bandwidth_GBps=50" (generated; what is not given takes its default). Throws
/// Error(no_input) for a name that is none of these, Error(bad_data) for a file that is no topology, and what
/// generate_topology() throws.
Topology load_topology(const std::string& spec);

}  // namespace rondo
