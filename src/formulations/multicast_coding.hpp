#pragma once

#include <optional>
#include <vector>

#include "multicast_layout.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/model/formulation.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// The transfers in order, the links of each depth-first, all with the epoch in which the transfer starts.
FlowField decode_multicast(const MulticastLayout& layout, const Solution& solution);

/// Values of all columns for a schedule on the topology of snap_to_grid(); nothing where it does not satisfy
/// `model`. The chunks of a contribution are renumbered in the order that the model requires.
std::optional<std::vector<double>> encode_multicast(const MulticastLayout& layout, const LinearModel& model,
                                                    const Schedule& schedule);

}  // namespace rondo
