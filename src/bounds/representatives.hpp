#pragma once

#include <set>
#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// One GPU an orbit, of those that `has` is true for.
template <class Has>
std::vector<GpuId> representatives(const Topology& topology, const Symmetry& symmetry, const Has& has) {
  std::set<int> orbits;
  std::vector<GpuId> gpus;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const int orbit = symmetry.node_orbit[topology.node_of(GpuId(g)).index()];
    if (has(GpuId(g)) && orbits.insert(orbit).second) gpus.emplace_back(g);
  }
  return gpus;
}

}  // namespace rondo
