#include "rondo/core/sketched_fabric.hpp"

#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"

namespace rondo {

std::optional<Schedule> on_whole_fabric(const SketchedFabric& sketched, const Schedule& schedule,
                                        const Topology& whole, const Demand& demand, int concurrency) {
  Schedule as_timed = schedule;
  for (Send& send : as_timed.sends) send.link = sketched.originals[send.link.index()];
  Schedule early =
      retimed({sketched.topology, schedule.sends, sketched.originals}, whole, demand, concurrency);
  for (Schedule* found : {&early, &as_timed}) {
    const ReplayResult replayed = replay(whole, demand, found->sends);
    if (!replayed.valid()) continue;
    found->finish_us = replayed.finish_us;
    canonicalise(*found);
    return std::move(*found);
  }
  return std::nullopt;
}

}  // namespace rondo
