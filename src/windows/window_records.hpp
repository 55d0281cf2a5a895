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

/// A round of replanting, as one part: `work` of a model, which `seconds` went to.
RoundPart part_of_replanting(std::size_t transfers, std::int64_t work_of_each, double seconds,
                             double gain_us);

/// Work of a part, as in WindowsProblem::model_work.
double work_of(const RoundPart& part);

/// At time 0: nothing is sent.
RoundState state_at_begin(const Demand& demand);

/// At the schedule's finish. `fabric`: a space of plans of the same demand.
RoundState state_at_end(const Schedule& schedule, const Demand& demand, PlanSpace fabric);

}  // namespace rondo
