#include "replayed.hpp"

#include <fmt/format.h>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {

double replayed_finish_us(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                          const std::string& whose) {
  const ReplayResult replayed = replay(topology, demand, sends);
  if (!replayed.valid()) {
    throw Error(ExitCode::internal, fmt::format("the replay refuses the schedule of {}: {}; please report it",
                                                whose, *replayed.violation));
  }
  return replayed.finish_us;
}

}  // namespace rondo
