#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// One flag a node.
using NodeSet = std::vector<char>;

/// A cut and its bound without latency: bytes that must leave over bandwidth that leaves.
struct Cut {
  NodeSet inside;
  double bytes = 0;
  double bandwidth_bound_us = 0;
};

enum class CutEffort : std::uint8_t {
  simple,  ///< around single GPUs and chassis, and the narrowest around these
  all      ///< and those that keep data from its destinations (ForestColl, arXiv 2402.06787, section 3)
};

/// Different cuts, out and in, best first; of those that are equal by symmetry one. Beyond the simple ones,
/// those that are found before `deadline` is over.
std::vector<Cut> find_cuts(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                           CutEffort effort, const Deadline& deadline = {});

/// Per link: 1 on those that leave the narrowest of the simple cuts, which is often the bottleneck where
/// links are damaged. Empty where there is no cut.
std::vector<std::vector<double>> narrowest_cut_prices(const Topology& topology, const Demand& demand);

}  // namespace rondo
