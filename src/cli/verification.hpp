#pragma once

#include <filesystem>
#include <string>

#include "rondo/core/schedule.hpp"

/// Schedules in files, and whether they are what they claim to be.
namespace rondo::cli {

/// The figures that a person asks for first.
struct Figures {
  double finish_us = 0;
  double algorithm_bandwidth_GBps = 0;
  double lower_bound_us = 0;  ///< 0: none
  double gap = 0;             ///< finish / bound - 1; 0 without a bound
};

Figures figures_of(const ProvenSchedule& proven);

/// "finish 40237.1 us, algorithm bandwidth 24.85 GB/s, lower bound 40002.7 us, gap 0.59 %".
std::string describe(const Figures& figures);

/// Reads FILE.h5, FILE.json or the schedule.h5 of a run folder. Throws Error(no_input), Error(bad_data).
ProvenSchedule load_schedule(const std::filesystem::path& path);

/// Replays the schedule, checks that it asks for its collective and derives its bound again. Throws
/// Error(bad_data) naming the first thing that does not hold.
void check_schedule(const ProvenSchedule& proven);

}  // namespace rondo::cli
