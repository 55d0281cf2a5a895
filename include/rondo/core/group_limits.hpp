#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Links that are faster than what they share: a group's figure (FORMATS.md 3, rule 6) is the most that a
/// transfer over one of its links gets. Engines see such links as no faster than that; what they find has
/// rates of its own on the fabric as it is.
namespace rondo {

/// The fabric with every link's bandwidth at most the figure of each group that it is in. Nothing where no
/// link is faster, or where bandwidth changes: a transfer of a rate of its own would not follow.
std::optional<Topology> within_groups(const Topology& topology);

/// Sends that follow the rules on `within` = within_groups(topology), for `topology`: transfers that would
/// run faster there get their rate, and a number where they have none.
void set_rates(const Topology& topology, const Topology& within, const Demand& demand,
               std::vector<Send>& sends);

/// The other way round: rates that transfers have on `within` by themselves are left out.
void drop_rates(const Topology& within, const Demand& demand, std::vector<Send>& sends);

}  // namespace rondo
