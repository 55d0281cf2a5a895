#pragma once

#include <vector>

#include "lifted_hops.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// All translations of all moves, in the order of schedules. A move's chunk is numbered as the hop's receiver
/// sees it when it is element 0 of its orbit: (o * chunks + k) * order + e is the k-th chunk of the GPU e
/// further on in orbit o.
Schedule all_translations(const Topology& topology, const Translations& translations, const LiftedHops& hops,
                          const Demand& demand, const std::vector<Move>& moves);

}  // namespace rondo
