#pragma once

#include <filesystem>
#include <string>

#include "rondo/core/schedule.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::cli {

/// Collective. Repairs `running` for each pair of nodes that links join, as if these were gone from `at_us`
/// on, dealt over the ranks. In `folder`, for nodes A < B by number: A-B.h5, the rest, and A-B.json, what
/// came of it; failures.json has all of these at last. What an earlier call with the same schedule and time
/// has finished is kept. Returns a table for the reader. Throws Error(bad_data) where the folder is of
/// another schedule or time.
std::string repair_single_failures(const ProvenSchedule& running, double at_us,
                                   const std::filesystem::path& folder, const Communicator& communicator);

}  // namespace rondo::cli
