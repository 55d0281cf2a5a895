#pragma once

#include <vector>

#include "rondo/model/toolbox.hpp"
#include "rondo/parallel/communicator.hpp"

/// Linear programs of flows by origin, whole or taken apart.
namespace rondo {

/// Solves `formulation` of the instance by tools.lp, or as tools.solve_in_parts does. Collective where
/// tools.on_all_ranks.
SolvedFlow solve_flow(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                      const Toolbox& tools);

/// Collective. Each of the flows by itself, dealt over the ranks; `solver` works on one rank.
std::vector<SolvedFlow> solve_each(const std::vector<Instance>& flows, const Formulation& formulation,
                                   const SolveLimits& limits, const Solver& solver,
                                   const Communicator& communicator);

}  // namespace rondo
