#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Schedules one after the other, and slices of one.
namespace rondo {

/// `first`, and `second` once all of it is there.
std::vector<Send> in_turn(const Topology& topology, std::vector<Send> first, const std::vector<Send>& second);

/// Every chunk in `slices` of its bytes, slice after slice, all at the times of the whole: no schedule, but
/// what is to be put in order.
std::vector<Send> sliced(const std::vector<Send>& sends, int slices);

/// The same one behind the other in the time of the whole, which is a schedule again where messages cost
/// nothing.
std::vector<Send> cut_finer(const std::vector<Send>& sends, int slices);

/// Each transfer as early as their order allows; nothing where the replay refuses that.
std::optional<Schedule> drawn_together(const Topology& topology, const Demand& demand,
                                       const std::vector<Send>& sends);

}  // namespace rondo
