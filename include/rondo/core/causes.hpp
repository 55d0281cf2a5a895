#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/schedule.hpp"

namespace rondo {

/// One a send: the index of the send that brought the chunk to where this one starts, -1 at the chunk's
/// origin (and where nothing did, in a schedule that the replay would refuse). At a GPU the first arrival
/// counts; at a switch the last one that can be passed on by then.
std::vector<std::int64_t> causes(const ProvenSchedule& proven);

}  // namespace rondo
