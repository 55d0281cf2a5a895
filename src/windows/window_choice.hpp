#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/random.hpp"
#include "window_model.hpp"

namespace rondo {

struct ChosenWindows {
  std::vector<Window> windows = {};
  /// What critical transfers take of their links, the median: what leading one of them elsewhere gains.
  double most_us = 0;
};

/// The windows of a round, `most` or fewer: first stretches of time around critical transfers, which do not
/// touch, in the order of time; then, up to half of all, what starts last, of several lengths. All of it at
/// random. None where no transfer is critical.
ChosenWindows choose_windows(const SurveyedPlan& plan, const PlanSpace& space, std::size_t most,
                             Random& random);

}  // namespace rondo
