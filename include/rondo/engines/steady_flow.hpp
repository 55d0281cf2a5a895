#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/decomp/orbits.hpp"
#include "rondo/engines/engine.hpp"

namespace rondo {

/// The symmetry of an instance and the steady-state flow of its pairwise demand, for bounds and engines
/// alike.
struct SteadyFlow {
  DemandPattern pattern;
  Symmetry symmetry;                         ///< trivial where it is not to be used
  std::shared_ptr<const FlowOrbits> orbits;  ///< null where the symmetry is trivial
  std::size_t columns = 0;         ///< of the linear program: flows by origin and link, or their orbits
  std::size_t all_columns = 0;     ///< without symmetry
  std::optional<FlowField> field;  ///< of one origin of each orbit; absent where there is no optimum
  std::string why_not;             ///< what kept it from being solved
};

/// Beyond so many columns simplex takes too long for a bound (about 5 s there).
inline constexpr std::size_t kMaxSteadyFlowColumns = 20'000;

/// Finds the symmetry, unless `use_symmetry` is false, and what it leaves of the flow; solves nothing.
SteadyFlow reduce(const Instance& instance, bool use_symmetry);

/// The same, and solves the flow unless it has more than `most_columns` columns or the demand is multicast.
SteadyFlow solve_steady_flow(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                             const SolveLimits& limits, std::size_t most_columns = kMaxSteadyFlowColumns);

}  // namespace rondo
