#pragma once

#include "rondo/core/collective.hpp"
#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/local_search/transfer_plan.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "window_solver.hpp"

/// What rounds in windows leave in their records.
namespace rondo {

RoundPart part_of(const Window& window, const WindowAnswer& answer, const PartOutcome& outcome);

/// At time 0: nothing is sent.
RoundState state_at_begin(const Demand& demand);

/// At the schedule's finish. `fabric`: a space of plans of the same demand.
RoundState state_at_end(const Schedule& schedule, const Demand& demand, PlanSpace fabric);

}  // namespace rondo
