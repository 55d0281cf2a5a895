#pragma once

#include <string>
#include <vector>

namespace rondo {

struct ShippedTopology {
  std::string name;
  const char* json;
};

/// The files of jobs/topologies, which are compiled in: a program needs none of them beside it.
const std::vector<ShippedTopology>& shipped_topology_files();

/// The files of jobs/machines likewise: NCCL's XML.
struct ShippedMachine {
  std::string name;
  const char* xml;
};
const std::vector<ShippedMachine>& shipped_machine_files();

}  // namespace rondo
