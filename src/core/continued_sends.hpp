#pragma once

#include <span>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {

/// Transfers::continued alone, for a fraction of the time of all that transfers_of() finds.
std::vector<int> continued_sends(const Topology& topology, std::span<const Send> sends);

/// Transfers without the causes of their deliveries.
Transfers paired_at_switches(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
