#pragma once

#include <span>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// TE-CCL's reward of early delivery (section 3.1): over all destinations of all chunks and all epochs k from
/// 0 to `epochs` - 1, the sum of 1 / (k + 1) where the chunk is there by the end of epoch k, (k + 1) x
/// `epoch_us`. `sends`: of a schedule that the replay accepts, without sums.
double early_delivery(const Topology& topology, const Demand& demand, std::span<const Send> sends,
                      double epoch_us, int epochs);

}  // namespace rondo
