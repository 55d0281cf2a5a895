#pragma once

#include <sstream>
#include <string>

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

/// On every rank what the root makes of `work`, while the others wait: what is found alone costs as much as
/// what all find together, and one rank is enough to compare with.
template <typename Work>
std::string of_root(const Communicator& world, const Work& work) {
  return to_text(on_root(world, [&] { return to_bytes(work()); }));
}

}  // namespace rondo
