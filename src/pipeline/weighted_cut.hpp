#pragma once

#include <vector>

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/sharing.hpp"

namespace rondo {

/// Of single GPUs, chassis and cuts of bounds, and the rest of each, sets of nodes, each ascending, that
/// prove as much of the weighted sum of finishes (weighted_bound() in core/tenants.hpp) as all of them
/// (beyond 12 tenants, or 64 sets: as found); none where they add nothing to the tenants' own bounds.
/// `tenants`: their bounds, starts and priorities count.
std::vector<std::vector<NodeId>> weighted_cuts(const Instance& instance, const Bounds& bounds,
                                               const std::vector<TenantOutcome>& tenants);

/// The tenants with what the sets prove of each: of outcomes their bounds, starts and priorities.
std::vector<WeighedTenant> weighed(const Topology& topology, const Demand& demand,
                                   const std::vector<TenantOutcome>& tenants,
                                   const std::vector<std::vector<NodeId>>& sets);

}  // namespace rondo
