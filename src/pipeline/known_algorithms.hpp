#pragma once

#include <optional>

#include "explore.hpp"

namespace rondo {

/// Collective. Of engine `auto`: the algorithms of NCCL and MPI in all numbers of chunks, those that may end
/// before `found`, and local search after what does; so that nothing that users have today ends before the
/// schedule. The best one, unless `found` ends as early. Nothing with a kept schedule or a sketch, on fabrics
/// of more than a few hundred GPUs, and where all time is used up. Adds to the candidates of `found`. Keeps
/// states apart from those of explore() and improve().
std::optional<Incumbent> better_known_algorithm(const Problem& problem, const Bounds& bounds,
                                                const Toolbox& tools, Exploration& found, StopRule& rule,
                                                const RunContext& context);

}  // namespace rondo
