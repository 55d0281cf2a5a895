#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/link_timetable.hpp"

namespace rondo {

/// The least key goes first.
using KeyedChunk = std::pair<std::uint64_t, ChunkId>;

/// `first` and what of `others`, which are ascending, goes with it over the hop from `t_us` on in one
/// transfer: of long chunks a part, unless `all`.
std::vector<ChunkId> joined_chunks(const Hop& hop, ChunkId first, const std::vector<KeyedChunk>& others,
                                   const Demand& demand, const LinkTimetable& timetable, double t_us,
                                   bool all);

}  // namespace rondo
