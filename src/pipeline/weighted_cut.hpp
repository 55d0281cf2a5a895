#pragma once

#include <vector>

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/sharing.hpp"

namespace rondo {

/// Of single GPUs, chassis and cuts of bounds, and the rest of each, the nodes that prove most of the
/// weighted sum of finishes (weighted_bound_us() in core/tenants.hpp), ascending; none where they add nothing
/// to the tenants' own bounds. `tenants`: their bounds, starts and priorities count.
std::vector<NodeId> weighted_cut(const Instance& instance, const Bounds& bounds,
                                 const std::vector<TenantOutcome>& tenants);

}  // namespace rondo
