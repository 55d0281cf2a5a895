#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rondo/bounds/cuts.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// One GPU an orbit, of those that are flagged.
std::vector<GpuId> representatives(const Topology& topology, const Symmetry& symmetry,
                                   const std::vector<char>& flags);

/// What is asked of a search for bounds of single GPUs.
struct OneSidedTask {
  const Topology& topology;
  const Demand& demand;
  const std::vector<NodeSet>& cuts;  ///< whose insides are tried
  std::vector<GpuId> destinations;   ///< one an orbit
  double least_us = 0;               ///< what is no later is of no use
  bool backwards = false;            ///< whether it is the transposed problem
};

/// The best that `search` finds of the GPUs that want data and, where the demand is unicast and may be
/// transposed, of those that send: they want it in the transposed problem, whose certificate is turned back.
std::optional<LowerBound> searched_in_both_directions(
    const Topology& topology, const Demand& demand, const Symmetry& symmetry,
    const std::vector<NodeSet>& cuts, double least_us,
    const std::function<std::optional<LowerBound>(const OneSidedTask&)>& search);

}  // namespace rondo
