#pragma once

#include <optional>
#include <span>

#include "rondo/core/schedule.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// The plan of a kept schedule for another topology with the same GPUs: its transfers are placed in the order
/// of their starts, each as early as the links allow. A transfer takes another path, the one that brings the
/// chunk first, where its own is gone or would bring the chunk later than others can wait for it: than its
/// latest arrival in the kept plan, times `due_scale`. `links`: per link of `kept.topology` the one of
/// `space.topology` that takes its place, invalid where there is none; chunks have the same numbers in both
/// demands, perhaps other bytes. Adds hops to `space`. Nothing where the kept schedule has no plan (see
/// plan_of). Throws Error(unavailable) where no path leads to a destination.
std::optional<TransferPlan> rerouted(const ProvenSchedule& kept, std::span<const LinkId> links,
                                     PlanSpace& space, double due_scale);

}  // namespace rondo
