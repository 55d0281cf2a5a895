#pragma once

#include <vector>

#include "rondo/core/ids.hpp"

namespace rondo {

/// Which flows by origin are equal by symmetry. The flow of one origin of each orbit is decided; in it, links
/// of one orbit of the origin's stabiliser carry the same, and nodes of one orbit have the same balance.
struct FlowOrbits {
  struct Origin {
    GpuId gpu;                    ///< the representative
    std::size_t size = 1;         ///< origins in its orbit
    std::vector<int> link_orbit;  ///< per link; under the origin's stabiliser
    std::vector<int> node_orbit;  ///< per node
  };
  std::vector<Origin> origins;  ///< by GPU
  std::vector<int> link_orbit;  ///< per link; under the whole group
};

/// Sizes of orbits and a member of each, the first one. `orbit`: numbers 0 .. k-1.
struct OrbitTable {
  std::vector<int> size;
  std::vector<int> first;
  explicit OrbitTable(const std::vector<int>& orbit) {
    for (std::size_t i = 0; i < orbit.size(); ++i) {
      const auto o = static_cast<std::size_t>(orbit[i]);
      if (o >= size.size()) {
        size.resize(o + 1, 0);
        first.resize(o + 1, -1);
      }
      if (size[o]++ == 0) first[o] = static_cast<int>(i);
    }
  }
  int count() const { return static_cast<int>(size.size()); }
};

}  // namespace rondo
