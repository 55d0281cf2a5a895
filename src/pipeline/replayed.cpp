#include "replayed.hpp"

#include <fmt/format.h>

#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {

double replayed_finish_us(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                          const std::string& whose) {
  const ReplayResult replayed = replay(topology, demand, sends);
  if (!replayed.valid()) throw_refused(whose, *replayed.violation);
  return replayed.finish_us;
}

std::optional<Schedule> accepted(const Topology& topology, const Demand& demand, Schedule schedule) {
  const ReplayResult replayed = replay(topology, demand, schedule.sends);
  if (!replayed.valid()) return std::nullopt;
  schedule.finish_us = replayed.finish_us;
  return schedule;
}

std::optional<Schedule> accepted_if_made(const Topology& topology, const Demand& demand,
                                         const std::function<Schedule()>& make) {
  try {
    return accepted(topology, demand, make());
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    return std::nullopt;
  }
}

void throw_refused(const std::string& whose, const std::string& violation) {
  throw Error(ExitCode::internal,
              fmt::format("the replay refuses the schedule of {}: {}; please report it", whose, violation));
}

double checked_finish_us(double claimed_us, double replayed_us, const std::string& whose) {
  if (times_equal(replayed_us, claimed_us)) return replayed_us;
  throw Error(ExitCode::internal,
              fmt::format("{} says that it ends at {} us, the replay {} us; please report it", whose,
                          claimed_us, replayed_us));
}

}  // namespace rondo
