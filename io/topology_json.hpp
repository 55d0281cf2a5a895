#pragma once

#include <string>

#include "rondo/io/json_files.hpp"

namespace rondo {

/// topology_from_json for a topology at `place` within a larger document.
Topology read_topology(const Json& json, const std::string& place);

}  // namespace rondo
