#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rondo/core/live_state.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// What goes on when links have failed. Links are those of the fabric that is left; time 0 is the failure.
struct RestToDo {
  const Topology& topology;
  const RestDemand& demand;
  const LiveState& state;             ///< of the running schedule, in its time and its links
  std::span<const LinkId> links;      ///< per link of the running schedule's fabric; invalid: gone
  std::span<const Send> on_links;     ///< what is under way, with rates
  int concurrency = kAnyConcurrency;  ///< transfers at a time on a link of a GPU
};

struct ContinuingRules {
  /// Sums whose plan is broken are placed before all else, rather than when their plan would have gone on.
  bool broken_first = false;
  /// A copy, also of a sum that is complete, keeps to its planned path where that brings it by its planned
  /// arrival times this; else it takes the soonest.
  double due_scale = 1;
  /// Switches copy what passes them to more GPUs, where that is no later than another transfer.
  bool copying = false;
};

/// The rest of the running schedule: its deliveries in their order, each as early as links allow. What was
/// lost, or planned over links that are gone, takes the soonest path from any GPU that has the datum. Sums
/// that lose a delivery are added up anew from what the GPUs have: the parts move, the farthest first, to the
/// nearest other part on the way to where the plan had the sum complete, through GPUs that have nothing of it
/// that the part lacks. Throws Error(unavailable) where no path is left, naming the chunk.
Schedule continued(const RestToDo& rest, const ContinuingRules& rules);

}  // namespace rondo
