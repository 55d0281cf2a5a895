#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The finish time by the replay. Throws Error(internal), naming `whose` schedule it is, where the replay
/// refuses it.
double replayed_finish_us(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                          const std::string& whose);

/// With its finish time by the replay; nothing where the replay refuses it.
std::optional<Schedule> accepted(const Topology& topology, const Demand& demand, Schedule schedule);
/// The same of what `make` makes; nothing either where that throws Error(unavailable).
std::optional<Schedule> accepted_if_made(const Topology& topology, const Demand& demand,
                                         const std::function<Schedule()>& make);

/// Throws Error(internal): the replay refuses `whose` schedule for the violation.
[[noreturn]] void throw_refused(const std::string& whose, const std::string& violation);

/// The finish time of the replay. Throws Error(internal), naming `whose`, where it is not what was claimed.
double checked_finish_us(double claimed_us, double replayed_us, const std::string& whose);

}  // namespace rondo
