#pragma once

#include <optional>

#include "../steps/task_scheduler.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// TACCL's third step. The schedule's order on every link is kept; where messages cost, which neighbours in
/// it travel together between nodes, at most six, so that the last arrival is earliest. `may_join` per hop.
/// Nothing where no two may, where there are too many for the solver or where it finds nothing better.
std::optional<Schedule> contiguous(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                                   const Schedule& schedule, const std::vector<char>& may_join,
                                   const Solver& milp, const SolveLimits& limits);

}  // namespace rondo
