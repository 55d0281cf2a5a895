#pragma once

#include <span>
#include <vector>

#include "rondo/core/replay.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {

/// As the replay compares times.
inline bool not_after(double a_us, double b_us) {
  return a_us <= b_us || times_equal(a_us, b_us);
}

/// Transfers::continued alone, for a fraction of the time of all that transfers_of() finds.
std::vector<int> continued_sends(const Topology& topology, std::span<const Send> sends);

/// Transfers without the causes of their deliveries.
Transfers paired_at_switches(const Topology& topology, const Demand& demand, std::span<const Send> sends);

}  // namespace rondo
