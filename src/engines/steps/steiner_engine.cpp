#include <algorithm>
#include <map>
#include <memory>

#include "dealing.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/engine_row.hpp"
#include "steiner_packing.hpp"
#include "task_scheduler.hpp"

/// Data with several destinations along packed trees, over GPUs that want none of it where that is faster.
namespace rondo {
namespace {

constexpr int kMostSteinerMasters = 300;
constexpr double kShareOfSteinerPacking = 0.5;  ///< of a time limit
/// Origins times destinations: a tree is grown destination by destination.
constexpr double kMostJoins = 4096;

// Every contribution's first chunk, then every second one; of one turn what has the longest way before it.
const char* const kByTurns = "by-turns";
const char* const kHalfRate =
    "half-rate";  // the same at half of the links' rates: two transfers share a link
constexpr double kHalves = 2;

/// What is done along all trees, and per task how far on its chunk stands among its block's, from 0 to 1.
struct OutTasks {
  TaskGraph graph;
  std::vector<double> turn;
};

OutTasks tasks_along(const Topology& topology, const SteinerPacking& packing, const Demand& demand,
                     bool half_rate) {
  OutTasks tasks;
  std::map<std::vector<LinkId>, int> hop_of;
  const auto chunks_each = static_cast<std::size_t>(demand.chunks_per_contribution());
  for (const SteinerBlock& block : packing.blocks) {
    const std::size_t num_chunks = block.contributions.size() * chunks_each;
    std::vector<double> shares;
    for (const SteinerTree& tree : block.trees) shares.push_back(tree.weight);
    const std::vector<std::size_t> tree_of = deal(shares, num_chunks);
    for (std::size_t k = 0; k < num_chunks; ++k) {
      const ChunkId chunk(block.contributions[k / chunks_each] * chunks_each + k % chunks_each);
      std::map<GpuId, int> brought_by;
      for (const std::vector<LinkId>& links : block.trees[tree_of[k]].hops) {
        const auto [known, is_new] = hop_of.try_emplace(links, static_cast<int>(tasks.graph.hops.size()));
        if (is_new) {
          const Hop whole = make_hop(topology, links);
          tasks.graph.hops.push_back(half_rate ? slowed(whole, kHalves) : whole);
        }
        const Hop& hop = tasks.graph.hops[index(known->second)];
        std::vector<int> causes;
        if (const auto before = brought_by.find(hop.src); before != brought_by.end())
          causes.push_back(before->second);
        brought_by[hop.dst] = tasks.graph.add(known->second, chunk, SendOp::copy, causes);
        tasks.turn.push_back(static_cast<double>(k) / static_cast<double>(num_chunks));
      }
    }
  }
  return tasks;
}

Schedule schedule_along_out_trees(const Topology& topology, const SteinerPacking& packing,
                                  const Demand& demand, const EngineOptions& options) {
  const OutTasks tasks = tasks_along(topology, packing, demand, options.policy == kHalfRate);
  std::vector<double> rank = times_to_go_us(tasks.graph, demand);
  const double a_turn = (1 + *std::ranges::max_element(rank)) * static_cast<double>(rank.size());
  for (std::size_t t = 0; t < rank.size(); ++t) rank[t] = a_turn * tasks.turn[t] - rank[t];
  return schedule_tasks(topology, demand, tasks.graph, rank, options.seed, options.concurrency);
}

double joins_of(const Demand& demand) {
  std::map<std::pair<GpuId, std::vector<GpuId>>, std::size_t> blocks;
  for (const Contribution& c : demand.contributions())
    blocks[{c.origin, c.destinations}] = c.destinations.size();
  double joins = 0;
  for (const auto& [ends, destinations] : blocks) joins += static_cast<double>(destinations);
  return joins;
}

}  // namespace

PreparedEngine prepare_steiner(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  if (instance.demand.has_several_sources()) {
    throw Error(ExitCode::unavailable,
                "engine steiner copies data of one source each; use --engine auto for several holders");
  }
  const Deadline deadline = Deadline(options.limits).after(kShareOfSteinerPacking);
  const auto packing = std::make_shared<const SteinerPacking>(pack_steiner_trees(
      *instance.topology, instance.demand, tools.column_master, kMostSteinerMasters, deadline));
  return [topology = instance.topology, packing](const Demand& demand, const EngineOptions& asked) {
    EngineResult result;
    result.schedule = schedule_along_out_trees(*topology, *packing, demand, asked);
    result.metrics["tree_throughput_us"] = packing->busy_us;
    result.metrics["columns"] = packing->iterations;
    return result;
  };
}

EngineInfo steiner_engine() {
  return {
      .name = "steiner",
      .help =
          "trees over members and relays packed by columns, list-scheduled; data with several destinations, "
          "tried by auto in groups and by counts",
      .policies = {kByTurns, kHalfRate},
      // Others do as well where all GPUs want the same amounts of all.
      .applicable =
          [](const Instance& instance, const EngineOptions&) {
            const Demand& demand = instance.demand;
            return demand.kind() == DemandKind::multicast && !demand.shape().is_plain() &&
                   joins_of(demand) <= kMostJoins;
          },
      // Alone on a link, half of its rate would be lost.
      .offers =
          [](const Instance&, const EngineOptions& options) {
            const bool is_alone = options.concurrency == 1;
            return [=](const std::string& policy) { return policy != kHalfRate || !is_alone; };
          },
      .work = [](const Demand& demand, const std::string&) { return 2 * demand.num_deliveries(); },
      .traits = kContinuousTime,
      .prepare = prepare_steiner};
}

}  // namespace rondo
