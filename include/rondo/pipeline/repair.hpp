#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rondo/core/live_state.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/pipeline/run_context.hpp"

namespace rondo {

/// Links fail while a schedule is running.
struct Failure {
  double at_us = 0;
  std::vector<LinkFailure> links;  ///< of the running schedule's fabric
};

struct Repair {
  /// What has to be done from then on, at time 0: on the fabric that is left, with the bound of its demand
  /// (rest_demand). Nothing where all that is wanted still lands.
  std::optional<ProvenSchedule> rest = std::nullopt;
  /// From the beginning, on the fabric of which links fail by `bandwidth_steps`: what happened, then the
  /// rest.
  ProvenSchedule whole;
  std::string made_by = {};   ///< "continued", "continued/broken-first", "list/rarest" ...
  std::size_t lost = 0;       ///< deliveries
  std::size_t in_flight = 0;  ///< deliveries that landed after the failure
  double landed_us = 0;
};

/// A schedule of what is left of `running`, which the replay accepts, when links fail: the best of its own
/// plan on other paths and of list scheduling (of sums, of the plan alone), replayed by itself and as a
/// whole. Links that still carry what is in flight are free for other transfers afterwards. Throws what
/// live_state() throws; Error(bad_data) naming what a GPU that is cut off cannot get any more;
/// Error(unavailable) where relays are forbidden, or no schedule was found.
Repair repair(const ProvenSchedule& running, const Failure& failure, const RunContext& context);

}  // namespace rondo
