#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The sums of the halves' parts by what spreads them, backwards over the opposite links. Nothing where the
/// replay refuses that.
std::optional<std::vector<Send>> mirrored(const Topology& topology, const Demand& gathering,
                                          const ProvenSchedule& spreading);

}  // namespace rondo
