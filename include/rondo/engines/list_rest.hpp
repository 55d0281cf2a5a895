#pragma once

#include <span>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// List schedules of data that may have several holders, ready when they say, on links some of which are
/// still busy with what is under way. `on_links`: that, with rates; times count from 0 and may be negative.
/// The best of as many policies and seeds as `work` sends allow, and at least one. No sums. Throws
/// Error(unavailable) where shared bandwidth keeps a delivery from happening.
struct ListedRest {
  Schedule schedule;
  std::string policy;
};
ListedRest list_rest(const Topology& topology, const Demand& demand, std::span<const Send> on_links,
                     int concurrency, double work);

}  // namespace rondo
