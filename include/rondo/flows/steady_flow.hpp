#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/decomp/orbits.hpp"
#include "rondo/model/toolbox.hpp"

namespace rondo {

/// The symmetry of an instance and the steady-state flow of its unicast demand, for bounds and engines
/// alike.
struct SteadyFlow {
  DemandPattern pattern;
  Symmetry symmetry;                         ///< that the flow has; trivial where it is not to be used
  std::shared_ptr<const FlowOrbits> orbits;  ///< null where nothing is reduced
  std::size_t columns = 0;         ///< of the linear program: flows by origin and link, or their orbits
  std::size_t all_columns = 0;     ///< without symmetry
  std::optional<FlowField> field;  ///< of one origin of each orbit; absent where there is no optimum
  std::map<std::string, double> metrics;  ///< of how it was solved, for the report
  std::string why_not;                    ///< what kept it from being solved
};

/// Beyond so many columns simplex takes too long for a bound: about 1 s there, and 4 to 9 s at 16'000, which
/// pricing solves in 0.2 s.
inline constexpr std::size_t kMaxSteadyFlowColumns = 15'000;
/// Beyond so many columns of the whole program (some 512 GPUs) pricing does as well, unless asked for.
inline constexpr std::size_t kMaxPricedColumns = 2'000'000;

/// Finds the symmetry, unless `use_symmetry` is false, and what it leaves of the flow; solves nothing. What
/// has more than `most_columns` even so is not reduced.
SteadyFlow reduce(const Instance& instance, bool use_symmetry,
                  std::size_t most_columns = std::numeric_limits<std::size_t>::max());

/// The same, and solves the flow as `tools.method` says, or in parts by `tools.solve_in_parts`; not where it
/// is too large or the demand multicast. Collective where tools.on_all_ranks.
SteadyFlow solve_steady_flow(const Instance& instance, const Toolbox& tools, bool use_symmetry,
                             const SolveLimits& limits);

}  // namespace rondo
