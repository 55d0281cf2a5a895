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

}  // namespace rondo
