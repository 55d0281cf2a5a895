#pragma once

#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A cycle through all members.
struct Ring {
  std::vector<int> order = {};  ///< members by their positions
  std::vector<int> hops = {};   ///< of the table, from each in `order` to the next
  double GBps = 0;              ///< that every link of it has for it beside the rings before
};

/// Rings one after another, each with the greatest bandwidth that a bounded depth-first search finds in what
/// those before have left, at most `most`; a ring of less than an eighth of the first one's is left out.
/// Neighbours in a ring are joined by a hop. Empty where none is found.
std::vector<Ring> find_rings(const Topology& topology, const HopTable& hops,
                             const std::vector<GpuId>& members, std::size_t most);

}  // namespace rondo
