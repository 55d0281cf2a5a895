#pragma once

#include <optional>
#include <vector>

#include "multicast_layout.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/model/formulation.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Transfers one after another, the links of each in depth-first order, all under the epoch in which it
/// starts.
FlowField decode_multicast(const MulticastLayout& layout, const Solution& solution);

/// Values of all columns for a schedule of `snap_to_grid`'s topology; nothing where it does not satisfy
/// `model`. The chunks of a contribution are renumbered in the order that the model asks for.
std::optional<std::vector<double>> encode_multicast(const MulticastLayout& layout, const LinearModel& model,
                                                    const Schedule& schedule);

}  // namespace rondo
