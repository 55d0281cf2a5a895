#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "switch_trees.hpp"

/// AllGather over switches that copy: a transfer to all GPUs of a leaf at once.
namespace rondo {
namespace {

/// Beyond, local search makes no copies either.
constexpr std::size_t kMostGpus = 128;

/// GPUs behind the same switches.
std::vector<std::vector<GpuId>> leaves_of(const Topology& topology) {
  std::map<std::vector<NodeId>, std::vector<GpuId>> behind;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    std::vector<NodeId> switches;
    for (const LinkId l : topology.in_links(topology.node_of(GpuId{g}))) {
      if (!topology.is_gpu(topology.link(l).src)) switches.push_back(topology.link(l).src);
    }
    std::ranges::sort(switches);
    behind[switches].emplace_back(g);
  }
  std::vector<std::vector<GpuId>> leaves;
  for (auto& [switches, gpus] : behind) leaves.push_back(std::move(gpus));
  return leaves;
}

/// What one GPU sends to some at once.
struct Multicast {
  GpuId origin;
  std::vector<GpuId> destinations;
};

/// In round r leaf a sends to leaf a + r, one GPU after another to all there; at last the GPUs of each leaf
/// to each other. In every round each leaf hears from one other, so that its GPUs' links are busy all the
/// time.
std::vector<Multicast> in_rounds(const std::vector<std::vector<GpuId>>& leaves) {
  std::size_t most = 0;
  for (const auto& leaf : leaves) most = std::max(most, leaf.size());
  std::vector<Multicast> order;
  for (std::size_t r = 1; r < leaves.size(); ++r) {
    for (std::size_t turn = 0; turn < most; ++turn) {
      for (std::size_t a = 0; a < leaves.size(); ++a) {
        if (turn < leaves[a].size()) order.push_back({leaves[a][turn], leaves[(a + r) % leaves.size()]});
      }
    }
  }
  for (std::size_t step = 1; step < most; ++step) {
    for (const auto& leaf : leaves) {
      for (std::size_t i = 0; i < leaf.size() && step < leaf.size(); ++i)
        order.push_back({leaf[i], {leaf[(i + step) % leaf.size()]}});
    }
  }
  return order;
}

/// Each chunk as early as the links allow.
EngineResult multicast(const Topology& topology, const Demand& demand, const EngineOptions& options) {
  SwitchTrees trees(topology);
  LinkTimetable timetable(topology, options.concurrency);
  std::vector<std::vector<ChunkId>> chunks_of(topology.num_gpus());
  for (std::size_t c = 0; c < demand.num_chunks(); ++c)
    chunks_of[demand.origin(ChunkId{c}).index()].emplace_back(c);
  const std::vector<Multicast> order = in_rounds(leaves_of(topology));
  Schedule schedule;
  for (const Multicast& all : order) {
    for (const ChunkId c : chunks_of[all.origin.index()]) {
      const double bytes = demand.bytes(c);
      for (const LinkTree& tree : trees.trees_of(all.origin, all.destinations, bytes)) {
        const Hop hop = make_hop(topology, tree.links, tree.parents);
        timetable.reserve(hop, c, bytes, timetable.earliest_start(hop, bytes, 0), schedule.sends);
      }
    }
  }
  for (const Send& s : schedule.sends) schedule.finish_us = std::max(schedule.finish_us, s.arrival_us);
  canonicalise(schedule);
  EngineResult result;
  result.schedule = std::move(schedule);
  return result;
}

void check_plain(const Instance& instance) {
  if (is_plain_allgather(instance)) return;
  throw Error(ExitCode::unavailable, "engine multicast does plain AllGather; use --engine auto");
}

/// Whether switches join all GPUs, and there are several leaves of several GPUs.
bool is_reached_by_copies(const Instance& instance) {
  const Topology& topology = *instance.topology;
  if (!is_plain_allgather(instance) || topology.num_gpus() > kMostGpus) return false;
  const auto leaves = leaves_of(topology);
  if (leaves.size() < 2 || leaves.size() == topology.num_gpus()) return false;
  SwitchTrees trees(topology);
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (std::ranges::count(trees.links_to_gpus(GpuId{g}), SwitchTrees::kNotReached) > 0) return false;
  }
  return true;
}

}  // namespace

EngineInfo multicast_engine() {
  return {.name = "multicast",
          .help = "to all GPUs behind a switch at once, which copies; AllGather where switches join all GPUs",
          .applicable = [](const Instance& instance,
                           const EngineOptions&) { return is_reached_by_copies(instance); },
          .takes_seeds = false,
          .traits = kContinuousTime,
          .prepare = [](const Instance& instance, const EngineOptions&, const Toolbox&) -> PreparedEngine {
            check_plain(instance);
            return [topology = instance.topology](const Demand& demand, const EngineOptions& options) {
              return multicast(*topology, demand, options);
            };
          }};
}

}  // namespace rondo
