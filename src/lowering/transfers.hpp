#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo::lowering {

/// Keeps what the demand needs, with new causes, and orders it by start, causes first. Throws Error(bad_data)
/// when a destination is never reached. Chunks that are marked in `elsewhere`, one a chunk where it is not
/// empty, need no delivery.
std::vector<Delivery> needed_in_order(const Demand& demand, std::vector<Delivery> deliveries,
                                      const std::vector<char>& elsewhere = {});

/// Sends what goes between GPUs that neither share a row nor a column through one that shares both, so that
/// a GPU has at most `max_peers` peers in each direction: rows are chassis where those are equal in size,
/// else the GPUs stand in a square. Causes are left as they were. Throws Error(unavailable) when that is not
/// enough, or when a path is missing in the topology.
std::vector<Delivery> limit_peers(const Topology& topology, std::vector<Delivery> deliveries, int max_peers);

}  // namespace rondo::lowering
