#pragma once

#include <utility>
#include <vector>

#include "rondo/core/collective.hpp"

/// Sums of which some GPUs bring their part late (--ready): what can be done backwards in time is done as if
/// all were there at 0.
namespace rondo {

/// Whether a source of some sum is not ready at 0.
bool has_late_sums(const Demand& demand);

/// The same demand with all sums ready at 0, and copies as before.
Demand without_late_sums(const Demand& demand);

/// `on_time` is the demand of without_late_sums(late), split into whatever chunks: the same with the times of
/// `late`. Throws Error(unavailable) where contributions that differ in them alone are one there.
Demand with_late_sums(const Demand& on_time, const Demand& late);

/// The sources of sums that are not ready at 0 with their times, the latest first.
std::vector<std::pair<GpuId, double>> latest_sources(const Demand& demand);

}  // namespace rondo
