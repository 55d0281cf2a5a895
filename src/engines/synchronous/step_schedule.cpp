#include <algorithm>
#include <map>

#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {

Schedule schedule_of(const StepPlan& plan, const Topology& topology, const Demand& demand, bool join) {
  std::map<std::pair<int, int>, std::vector<ChunkId>> loads;  // by (step, link)
  for (const StepSend& send : plan.sends) loads[{send.step, send.arc}].push_back(ChunkId{send.chunk});
  const double bytes = demand.bytes(ChunkId{0});
  Schedule schedule;
  double begin_us = 0;
  double end_us = 0;
  int now = 0;
  for (const auto& [at, chunks] : loads) {
    const auto& [step, arc] = at;
    if (step != now) {
      now = step;
      begin_us = end_us;
    }
    const LinkId link{arc};
    const Hop hop = make_hop(topology, std::span(&link, 1));
    // Where messages cost nothing, chunks that need not wait for one another can go on sooner.
    const std::size_t together = join && topology.link(link).message_us > 0 ? chunks.size() : 1;
    double start_us = begin_us;
    for (std::size_t c = 0; c < chunks.size(); c += together) {
      const double moved = bytes * static_cast<double>(together);
      append_sends(topology, hop, std::span(chunks).subspan(c, together), moved, start_us, schedule.sends);
      start_us = schedule.sends.back().end_us;
      end_us = std::max(end_us, schedule.sends.back().arrival_us);
    }
  }
  canonicalise(schedule);
  return retimed({topology, schedule.sends}, topology, demand);
}

}  // namespace rondo
