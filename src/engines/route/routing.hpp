#pragma once

#include <cstdint>
#include <string>

#include "rondo/model/solver.hpp"
#include "route_graph.hpp"
#include "route_orbits.hpp"

namespace rondo {

struct Routing {
  RouteTrees trees;
  std::string origin;  ///< which of the two the trees come from, for the report
  int columns = 0;     ///< that are whole; 0: no program was solved
  std::int64_t nodes = 0;
};

/// TACCL's first step: a tree for every chunk such that the latest arrival is earliest where links may carry
/// several chunks at once, but in all no more than the time allows; or trees grown one after another, where
/// the program is too large or no better. Throws Error(unavailable) where the sketch leaves a destination no
/// way.
Routing route_chunks(const RouteGraph& graph, const Demand& demand, const RouteOrbits& orbits,
                     const Solver& milp, const SolveLimits& limits);

}  // namespace rondo
