#include <algorithm>

#include "rondo/core/index.hpp"
#include "switch_use.hpp"

namespace rondo::lowering {
namespace {

/// The sends of one chunk, as far as they are those of a sum that a switch makes for all.
struct Around {
  NodeId hub = {};
  bool fits = true;
  std::vector<char> gave = {}, got = {};  ///< per GPU
};

}  // namespace

std::vector<char> summed_by_switch(const ProvenSchedule& proven, const std::vector<int>& node_of) {
  const Topology& topology = proven.topology;
  const Demand& demand = proven.demand;
  const std::size_t gpus = topology.num_gpus();
  std::vector<char> summed(demand.num_chunks(), 0);
  if (std::ranges::any_of(node_of, [&](int node) { return node != node_of.front(); })) return summed;
  std::vector<Around> around(demand.num_chunks());
  for (const Send& send : proven.schedule.sends) {
    Around& mine = around[send.chunk.index()];
    if (mine.gave.empty()) {
      mine.gave.assign(gpus, 0);
      mine.got.assign(gpus, 0);
    }
    const Link& link = topology.link(send.link);
    const bool gives = topology.node(link.src).kind == NodeKind::gpu;
    const NodeId hub = gives ? link.dst : link.src;
    const NodeId end = gives ? link.src : link.dst;
    if (topology.node(hub).kind != NodeKind::switch_ || topology.node(end).kind != NodeKind::gpu ||
        (mine.hub != NodeId{} && mine.hub != hub)) {
      mine.fits = false;
      continue;
    }
    mine.hub = hub;
    char& seen = (gives ? mine.gave : mine.got)[topology.gpu_of(end).index()];
    mine.fits = mine.fits && seen == 0;
    seen = 1;
  }
  const auto all = [](const std::vector<char>& seen) {
    return !seen.empty() && std::ranges::find(seen, 0) == seen.end();
  };
  for (std::size_t c = 0; c < around.size(); ++c) {
    const Contribution& contribution = demand.contribution(ChunkId{c});
    const bool for_all = contribution.reduce && contribution.destinations.size() == gpus;
    summed[c] = for_all && around[c].fits && all(around[c].gave) && all(around[c].got) ? 1 : 0;
  }
  return summed;
}

}  // namespace rondo::lowering
