#pragma once

#include <filesystem>

#include "rondo/core/schedule.hpp"

/// Schedules in files of either form.
namespace rondo {

/// Reads FILE.json, FILE.h5 or the schedule.h5 of a run's folder. Whether the schedule is valid is for
/// verify() to say. Throws Error(no_input), Error(bad_data).
ProvenSchedule read_schedule(const std::filesystem::path& path);

/// Writes FILE.json, or HDF5 under any other name; whole or not at all, a file that is there is replaced.
/// Throws Error(cannot_create).
void write_schedule(const std::filesystem::path& path, const ProvenSchedule& proven);

}  // namespace rondo
