#pragma once

#include "rondo/local_search/transfer_plan.hpp"

/// Plans within the memory of GPUs for what they only pass on (FORMATS.md 3, rule 12).
namespace rondo {

/// Sets the quality, after giving a plan that needs more memory than there is (PlanSpace::relay_bytes) other
/// starts: chunks are placed one after another in the order in which they set out, each with its whole tree,
/// as early as links and the memory of all its relays allow. A chunk is brought to a relay as late as it can
/// be sent on without delay, and is there until its last send onwards ends; so no two chunks wait for each
/// other's memory. Where nothing fits, the quality is infinite. Throws TimeIsOver.
void settle(TransferPlan& plan, const PlanSpace& space);

/// A schedule that another engine has made, with other starts where it needs more memory than GPUs have.
/// Throws Error(unavailable) where none are found.
Schedule fitted_to_memory(const Topology& topology, const Demand& demand, Schedule schedule, int concurrency);

/// The same routes with whole chunks placed one after another, as if GPUs had room for few chunks that they
/// only pass on; `schedule` itself where that ends no earlier, where data has several destinations or nothing
/// is relayed, or where there are many sends: there local search finds as much.
Schedule by_whole_chunks(const Topology& topology, const Demand& demand, Schedule schedule, int concurrency);

}  // namespace rondo
