#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The wanted chunks of every GPU, relays included: what the list scheduler has to deliver where.
struct Deliveries {
  std::vector<std::vector<GpuId>> receivers;  ///< per contribution, ascending
};

/// The destinations of every contribution, and the GPUs that relay to them where destinations cannot be
/// reached over one another: shortest paths from the sources, spread over the topology by the load they put
/// on links. `seed` settles the order of the contributions.
Deliveries plan_deliveries(const Topology& topology, const HopTable& hops, const Demand& demand,
                           std::uint64_t seed);

}  // namespace rondo
