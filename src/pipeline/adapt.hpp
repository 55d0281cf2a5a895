#pragma once

#include <optional>

#include "explore.hpp"

namespace rondo {

/// What became of the kept schedule.
struct Adapted {
  Exploration found = {};
  bool is_enough = false;  ///< near enough to the bound for the rule that it was searched with
};

/// Collective. The kept schedule alone, rerouted and improved by local search: often all that a few changed
/// links need, for a small part of the work of all engines. Nothing where that is more work than local search
/// spends on a kept schedule; and unless the problem is to be adapted (is_adapted) by engine auto. Keeps its
/// states apart from those of explore() and improve().
std::optional<Adapted> adapt(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                             StopRule& rule, const RunContext& context);

}  // namespace rondo
