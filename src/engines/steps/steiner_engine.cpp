#include <algorithm>
#include <map>
#include <memory>

#include "dealing.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/flows/steiner_packing.hpp"
#include "task_scheduler.hpp"

/// Data with several destinations along packed trees, over GPUs that want none of it where that is faster.
namespace rondo {
namespace {

constexpr double kShareOfSteinerPacking = 0.5;  ///< of a time limit

// All contributions advance alike in their periods; what has a long path before it goes so much earlier.
const char* const kByTurns = "by-turns";
const char* const kHalfRate =
    "half-rate";  // the same at half of the links' rates: two transfers share a link
constexpr double kHalves = 2;

/// What is done along all trees, and per task when it is due if all data takes its trees evenly.
struct OutTasks {
  TaskGraph graph;
  std::vector<double> due_us;
};

class TaskMaker {
 public:
  TaskMaker(const Topology& topology, const SteinerPacking& packing, const Demand& demand, bool half_rate)
      : topology_(topology),
        packing_(packing),
        chunks_each_(static_cast<std::size_t>(demand.chunks_per_contribution())),
        half_rate_(half_rate) {}

  OutTasks run() {
    for (const SteinerBlock& block : packing_.blocks) {
      const std::size_t num_chunks = block.contributions.size() * chunks_each_;
      std::vector<double> shares;
      for (const SteinerTree& tree : block.trees) shares.push_back(tree.weight);
      const std::vector<std::size_t> tree_of = deal(shares, num_chunks);
      std::vector<std::size_t> of_period(packing_.from_us.size(), 0);
      for (const std::size_t tree : tree_of) ++of_period[last_period(block.trees[tree])];
      std::vector<std::size_t> before(of_period.size(), 0);
      for (std::size_t k = 0; k < num_chunks; ++k) {
        const SteinerTree& tree = block.trees[tree_of[k]];
        const std::size_t period = last_period(tree);
        const double share = static_cast<double>(before[period]++) / static_cast<double>(of_period[period]);
        const ChunkId chunk(block.contributions[k / chunks_each_] * chunks_each_ + k % chunks_each_);
        add(tree, chunk, block.ready_us, share);
      }
    }
    return std::move(tasks_);
  }

 private:
  static std::size_t last_period(const SteinerTree& tree) {
    return std::ranges::max(tree.hops, {}, &SteinerHop::period).period;
  }

  /// After `share` of what its period has for the block.
  double due_us(std::size_t period, double ready_us, double share) const {
    const auto& from_us = packing_.from_us;
    const double begin_us = std::max(from_us[period], ready_us);
    const double end_us = period + 1 < from_us.size() ? from_us[period + 1] : packing_.busy_us;
    return begin_us + share * std::max(0.0, end_us - begin_us);
  }

  void add(const SteinerTree& tree, ChunkId chunk, double ready_us, double share) {
    std::map<GpuId, int> brought_by;
    for (const auto& [links, period] : tree.hops) {
      const auto [known, is_new] = hop_of_.try_emplace(links, static_cast<int>(tasks_.graph.hops.size()));
      if (is_new) {
        const Hop whole = make_hop(topology_, links);
        tasks_.graph.hops.push_back(half_rate_ ? slowed(whole, kHalves) : whole);
      }
      const Hop& hop = tasks_.graph.hops[index(known->second)];
      std::vector<int> causes;
      if (const auto before = brought_by.find(hop.src); before != brought_by.end())
        causes.push_back(before->second);
      brought_by[hop.dst] = tasks_.graph.add(known->second, chunk, SendOp::copy, causes);
      tasks_.due_us.push_back(due_us(period, ready_us, share));
    }
  }

  const Topology& topology_;
  const SteinerPacking& packing_;
  std::size_t chunks_each_;
  bool half_rate_;
  std::map<std::vector<LinkId>, int> hop_of_;
  OutTasks tasks_;
};

Schedule schedule_along_out_trees(const Topology& topology, const SteinerPacking& packing,
                                  const Demand& demand, const EngineOptions& options) {
  const OutTasks tasks = TaskMaker(topology, packing, demand, options.policy == kHalfRate).run();
  std::vector<double> rank = times_to_go_us(tasks.graph, demand);
  for (std::size_t t = 0; t < rank.size(); ++t) rank[t] = tasks.due_us[t] - rank[t];
  return schedule_tasks(topology, demand, tasks.graph, rank, options.seed, options.concurrency);
}

}  // namespace

PreparedEngine prepare_steiner(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  if (instance.demand.has_several_sources()) {
    throw Error(ExitCode::unavailable,
                "engine steiner copies data of one source each; use --engine auto for several holders");
  }
  std::shared_ptr<const SteinerPacking> packing = options.packing;
  if (!packing) {
    const Deadline deadline = Deadline(options.limits).after(kShareOfSteinerPacking);
    packing = std::make_shared<const SteinerPacking>(pack_steiner_trees(
        *instance.topology, instance.demand, tools.column_master, kMostSteinerMasters, deadline));
  }
  return [topology = instance.topology, packing](const Demand& demand, const EngineOptions& asked) {
    EngineResult result;
    result.schedule = schedule_along_out_trees(*topology, *packing, demand, asked);
    result.metrics["tree_throughput_us"] = packing->busy_us;
    result.metrics["columns"] = packing->iterations;
    return result;
  };
}

EngineInfo steiner_engine() {
  return {.name = "steiner",
          .help =
              "trees to some GPUs and paths beside them, over any relays, packed by columns, list-scheduled; "
              "tried by auto on mixed demands, in groups and by counts",
          .policies = {kByTurns, kHalfRate},
          // Others do as well where all GPUs want the same amounts of all.
          .applicable =
              [](const Instance& instance, const EngineOptions&) {
                return takes_steiner_trees(instance.demand) &&
                       steiner_work(*instance.topology, instance.demand) <= kMostSteinerWork;
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
