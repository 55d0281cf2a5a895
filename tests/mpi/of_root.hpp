#pragma once

#include <mpi.h>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>

#include "rondo/core/schedule.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

/// A line for each send in turn, with times that are the same text only where they are equal to the bit.
inline std::string text_of(const Schedule& schedule) {
  std::ostringstream text;
  text << std::hexfloat;
  for (const Send& send : schedule.sends) {
    text << send.chunk.value << " over " << send.link.value << ": " << send.start_us << " to " << send.end_us
         << ", there at " << send.arrival_us << "\n";
  }
  return text.str();
}

/// Returns when all ranks are here. MPI waits by asking again and again, which takes a core from who works.
inline void meet_asleep(const Communicator& world) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(*static_cast<const MPI_Comm*>(world.mpi_communicator()), &request);
  for (int met = 0; MPI_Test(&request, &met, MPI_STATUS_IGNORE), met == 0;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// On every rank what the root makes of `work`, while the others wait: what is found alone costs as much as
/// what all find together, and one rank is enough to compare with.
template <typename Work>
std::string of_root(const Communicator& world, const Work& work) {
  struct Met {
    const Communicator& world;
    ~Met() { meet_asleep(world); }
  };
  if (!world.is_root()) meet_asleep(world);
  return to_text(on_root(world, [&] {
    const Met met{world};
    return to_bytes(work());
  }));
}

}  // namespace rondo
