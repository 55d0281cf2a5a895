#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rondo/core/chunk_range.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/parallel/communicator.hpp"

/// Schedules too large for one rank: each rank holds the sends of its part of the chunks (chunks_of_rank), in
/// the order of schedules.
namespace rondo {

/// Of a dealt schedule as a whole.
struct DealtSchedule {
  std::size_t num_sends = 0;
  std::size_t most_sends_on_a_link = 0;
};

/// Collective. The finish time of the schedule whose sends of its own chunks each rank passes, by the replay:
/// each rank looks at its chunks, and at some of the links, whose uses the others send to it. Throws
/// Error(internal), naming `whose`, where the replay refuses it, as replayed_finish_us() does.
double dealt_finish_us(const Communicator& communicator, const Topology& topology, const Demand& demand,
                       std::span<const Send> sends, const std::string& whose);

/// Collective. The sends of `rank`'s whole schedule, each with the owner of its chunk: what is left on this
/// rank. The other ranks pass none. They have to be in the order of schedules.
std::vector<Send> dealt(const Communicator& communicator, std::vector<Send> sends, int rank,
                        std::size_t num_chunks);

/// The next sends of all ranks in the order of schedules, or none: that was all.
using NextSends = std::function<std::span<const Send>()>;

/// Collective. Runs `work` on the root alone, which may ask for the sends of all ranks, and shares its
/// outcome as on_root() does. `sends`: those of this rank. The root never has more than a few thousand of
/// each other rank at once.
Bytes on_root_with_sends(const Communicator& communicator, std::span<const Send> sends,
                         const std::function<Bytes(const NextSends&)>& work);

}  // namespace rondo
