#pragma once

#include <optional>
#include <vector>

#include "grouping.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Sums for several GPUs each in groups: what each group does is a demand of its own.
namespace rondo {

/// What each group adds up, and what it spreads: contribution after contribution, part after part, for group
/// after group.
Demand gathering(const Demand& demand, const Grouping& grouping);
Demand spreading(const Demand& demand, const Grouping& grouping);

struct GroupedSchedule {
  Schedule schedule;
  int chunks = 0;  ///< of a contribution
};

/// What groups have gathered in so many chunks a part, the exchange between them, chunk by chunk or, where
/// messages cost, part by part too, and what they spread; then the same in 2, 4, ... slices one behind the
/// other, up to `most_slices`, each transfer as early as that allows. The best that the replay accepts;
/// nothing where hops do not let parts be exchanged.
std::optional<GroupedSchedule> in_groups(const Topology& topology, const Demand& demand,
                                         const Grouping& grouping, int chunks, int most_slices,
                                         int concurrency, std::vector<Send> gathered,
                                         std::vector<Send> spread);

}  // namespace rondo
