#pragma once

#include <memory>
#include <string>

#include "rondo/engines/engine.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/solvers/solvers.hpp"
#include "topologies.hpp"

/// Topologies by hand, generated or shipped, and the models and solvers that engines need.
namespace rondo {

inline std::shared_ptr<const Topology> shipped(const std::string& name) {
  return std::make_shared<const Topology>(load_topology(name));
}

inline Toolbox tools() {
  return {all_formulations(), make_clp_solver(), nullptr};
}

}  // namespace rondo
