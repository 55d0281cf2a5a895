#pragma once

#include <span>

#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// One plan with the changes that several neighbours make to the incumbent. Each chunk arrives at a GPU over
/// the hop of the first neighbour that has changed it; a chunk for which that gives no tree, that relays
/// change or that switches copy is taken from one neighbour whole. A transfer is placed by its start in the
/// incumbent and by how much each neighbour has moved it, all together; the result is justified. `neighbours`
/// have no useless transfers. Pure; finishes at any time, earlier or later than they do.
TransferPlan merged(const TransferPlan& incumbent, std::span<const TransferPlan> neighbours,
                    const PlanSpace& space);

}  // namespace rondo
