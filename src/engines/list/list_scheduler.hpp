#pragma once

#include <optional>
#include <vector>

#include "deliveries.hpp"
#include "list_rules.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Where a schedule that is already under way stands: what the scheduler continues from.
struct PartialSchedule {
  double time_us = 0;  ///< nothing more starts before
  std::vector<Holding> holdings =
      {};  ///< who has what from when on, other than at the origin; also in flight
  /// Sends that still occupy their links at `time_us` or will: of the demand's chunks, or with rates.
  std::vector<Send> on_links = {};
};

/// Builds a schedule in continuous time, event by event, by the rules of list_rules.hpp; the receiver that
/// misses the most bytes is served first. `hops` has to be the table of `topology`. With `partial`, the
/// schedule holds the further sends alone, and `finish_us` counts them alone.
Schedule list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                       const Deliveries& deliveries, const ListRules& rules,
                       const PartialSchedule* partial = nullptr);
/// The same from the beginning; nothing where `deadline` is over first.
std::optional<Schedule> list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                                      const Deliveries& deliveries, const ListRules& rules,
                                      const Deadline& deadline);

}  // namespace rondo
