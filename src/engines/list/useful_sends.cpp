#include "useful_sends.hpp"

#include <algorithm>

#include "chunk_set.hpp"

namespace rondo {

// The last transfer first: one serves a destination or a later one. Not by core's `pruned`: a bit for each
// GPU and chunk is enough here, and there can be many millions of transfers.
Schedule useful_sends(const HopTable& hops, const Demand& demand,
                      const std::vector<ListedTransfer>& transfers, const std::vector<Send>& sends) {
  std::vector<ChunkSet> needed(demand.num_gpus(), no_chunks(demand.num_chunks()));
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId{c})) insert(needed[g.index()], c);
  }
  Schedule schedule;
  std::size_t end = sends.size();
  for (auto t = transfers.rbegin(); t != transfers.rend(); ++t) {
    const Hop& hop = hops.hop(t->move.hop);
    const std::size_t chunk = t->move.chunk.index();
    const std::size_t begin = end - hop.links.size();
    if (contains(needed[hop.dst.index()], chunk)) {
      insert(needed[hop.src.index()], chunk);
      schedule.sends.insert(schedule.sends.end(), sends.begin() + static_cast<std::ptrdiff_t>(begin),
                            sends.begin() + static_cast<std::ptrdiff_t>(end));
      // A relay's arrival is followed by that of what it is needed for.
      schedule.finish_us = std::max(schedule.finish_us, t->arrival_us);
    }
    end = begin;
  }
  return schedule;
}

}  // namespace rondo
