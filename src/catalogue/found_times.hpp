#pragma once

#include <string>

#include "finding_bins.hpp"
#include "rondo/catalogue/folder.hpp"

/// Times that replays of a build have found, beside the cells until the bins are there: a build that goes on
/// after a stop or a kill does not replay them again.
namespace rondo::catalogue {

/// Adds one to what this rank has found. Throws Error(cannot_create) where it cannot be written.
void keep_time(const Folder& folder, const Series& series, int rank, const std::string& schedule,
               double size_bytes, double finish_us);

/// What all ranks of all attempts have found. Lines that are damaged, or of another version, count for
/// nothing.
KnownTimes found_times(const Folder& folder, const Series& series);

void remove_found_times(const Folder& folder, const Series& series);

}  // namespace rondo::catalogue
