#pragma once

#include <optional>
#include <vector>

#include "explore.hpp"

namespace rondo {

/// Collective. Of engine `auto`: the algorithms of NCCL and MPI in all numbers of chunks, those that may end
/// before `found`, and local search after what does; so that nothing that users have today ends before the
/// schedule. Each ends earlier than `found` and those before it; where transfers are joined afterwards, which
/// may take other paths, there are all of them, without local search. Nothing with a kept schedule or a
/// sketch, on fabrics of more than a few hundred GPUs, and where all time is used up. Adds to the candidates
/// of `found`. Keeps states apart from those of explore() and improve().
std::vector<Incumbent> known_algorithms(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                        Exploration& found, StopRule& rule, const RunContext& context);

/// Collective. The same of SCCL's algorithms (rondo/pipeline/frontier.hpp), on few GPUs whose messages cost:
/// the one of least cost, if it ends earlier than `found`.
std::optional<Incumbent> better_synchronous_algorithm(const Problem& problem, const Bounds& bounds,
                                                      const Toolbox& tools, Exploration& found,
                                                      StopRule& rule, const RunContext& context);

}  // namespace rondo
