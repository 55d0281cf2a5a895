#pragma once

#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Schedules one after the other, and slices of one.
namespace rondo {

/// `first`, and `second` once all of it is there.
std::vector<Send> in_turn(const Topology& topology, std::vector<Send> first, const std::vector<Send>& second);

/// Every chunk in `slices` of its bytes, slice after slice, all at the times of the whole: no schedule, but
/// what is to be put in order.
std::vector<Send> sliced(const std::vector<Send>& sends, int slices);

/// The same one behind the other in the time of the whole, which is a schedule again where messages cost
/// nothing, no switch stores and no bandwidth changes.
std::vector<Send> cut_finer(const std::vector<Send>& sends, int slices);
/// A schedule of `demand`, which has one chunk a contribution, in more so cut that it has `chunks` of them;
/// its transfers are numbered.
ProvenSchedule cut_into(ProvenSchedule whole, const Demand& demand, int chunks);

/// In how many chunks a contribution two schedules of one transfer a chunk and delivery, of which there are
/// `deliveries`, come together if they are cut finer: few more than they have. 0 where there is no such
/// number, or a schedule cannot be cut.
int common_chunks(const Topology& topology, int of_first, int of_second, double deliveries);

/// Each transfer as early as their order allows; nothing where the replay refuses that.
std::optional<Schedule> drawn_together(const Topology& topology, const Demand& demand,
                                       const std::vector<Send>& sends);

}  // namespace rondo
