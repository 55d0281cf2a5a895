#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "dealing.hpp"
#include "even_rates.hpp"
#include "paths_between.hpp"
#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/engine_row.hpp"
#include "spanning_packing.hpp"
#include "task_scheduler.hpp"

/// AllReduce along spanning trees: sums come in along each tree to its root, results go out along it.
namespace rondo {
namespace {

constexpr int kMostPackingIterations = 400;
/// Pairs of GPUs looked at, over all iterations; and GPUs of which that leaves too few trees to pack.
constexpr double kMostPairsOfPacking = 1e7;
constexpr std::size_t kMostGpusOfAuto = 512;
constexpr double kShareOfPacking = 0.5;  ///< of a time limit
constexpr std::size_t kMostRoots = 64;
constexpr double kNearBound = 1e-3;
/// Of the largest schedules, which have four sends a delivery where all GPUs are behind switches; and what
/// each GPU may have to do with each other one, since executors have to keep up.
constexpr double kMostDeliveries = 1.1e6;
constexpr double kMostChunksAPair = 512;

const char* const kInOrder = "in-order";  // chunk by chunk: spreading one begins as soon as it is reduced
// In order; at rates that fill links of different bandwidth alike.
const char* const kEvenRates = "even-rates";

/// A packed tree as tasks need it: who has whom behind, along which hop. Trees without a root of their own
/// list neighbours, of which the one towards the root is left out.
struct TreeShape {
  struct Behind {
    int member = 0;
    int hop = 0;
  };
  int root = -1;
  std::vector<std::vector<Behind>> gather;  ///< per member; hops lead to it
  std::vector<std::vector<Behind>> spread;  ///< per member; hops lead from it
};

class TreeTasks {
 public:
  TreeTasks(const Topology& topology, const SpanningPacking& packing) {
    for (const WeightedTree& tree : packing.trees) {
      TreeShape shape{tree.root, std::vector<std::vector<TreeShape::Behind>>(topology.num_gpus()), {}};
      shape.spread = shape.gather;
      for (const MemberArc& arc : tree.gather)
        shape.gather[index(arc.to)].push_back({arc.from, add_hop(topology, arc.links)});
      for (const MemberArc& arc : tree.spread)
        shape.spread[index(arc.from)].push_back({arc.to, add_hop(topology, arc.links)});
      shapes_.push_back(std::move(shape));
    }
  }

  TaskGraph& graph() { return graph_; }

  /// The tree's own or the member from which all others are reached soonest; of several the `turn`-th,
  /// around.
  int root_of(std::size_t tree, double bytes, std::size_t turn) {
    if (shapes_[tree].root >= 0) return shapes_[tree].root;
    auto& known = centres_[{tree, bytes}];
    if (known.empty()) {
      std::vector<double> far(shapes_[tree].spread.size());
      for (std::size_t m = 0; m < far.size(); ++m) {
        const bool is_in_tree = !shapes_[tree].spread[m].empty();
        far[m] = is_in_tree ? depth_us(tree, static_cast<int>(m), -1, bytes) : kInfinity;
      }
      const double least = *std::ranges::min_element(far);
      for (std::size_t m = 0; m < far.size(); ++m) {
        if (far[m] <= least * (1 + 1e-9)) known.push_back(static_cast<int>(m));
      }
    }
    return known[turn % known.size()];
  }

  void add_chunk(std::size_t tree, int root, ChunkId chunk) {
    const TreeShape& shape = shapes_[tree];
    add_out(shape, root, -1, chunk, add_in(shape, root, -1, chunk));
  }

 private:
  int add_hop(const Topology& topology, const std::vector<LinkId>& links) {
    const auto [known, is_new] = hop_of_.try_emplace(links, static_cast<int>(graph_.hops.size()));
    if (is_new) graph_.hops.push_back(make_hop(topology, links));
    return known->second;
  }

  /// Trees can be as deep as there are GPUs, at most some thousands.
  double depth_us(std::size_t tree, int member, int from, double bytes) const {
    double deepest = 0;
    for (const auto& next : shapes_[tree].spread[index(member)]) {
      if (next.member == from) continue;
      const double hop_us = graph_.hops[index(next.hop)].duration_us(bytes);
      deepest = std::max(deepest, hop_us + depth_us(tree, next.member, member, bytes));
    }
    return deepest;
  }

  /// The tasks that bring to `member` the sums of all that is behind it, seen from `towards`.
  std::vector<int> add_in(const TreeShape& shape, int member, int towards, ChunkId chunk) {
    std::vector<int> arrivals;
    for (const auto& next : shape.gather[index(member)]) {
      if (next.member == towards) continue;
      const std::vector<int> below = add_in(shape, next.member, member, chunk);
      arrivals.push_back(graph_.add(next.hop, chunk, SendOp::reduce, below));
    }
    return arrivals;
  }

  void add_out(const TreeShape& shape, int member, int from, ChunkId chunk, const std::vector<int>& causes) {
    for (const auto& next : shape.spread[index(member)]) {
      if (next.member == from) continue;
      add_out(shape, next.member, member, chunk, {graph_.add(next.hop, chunk, SendOp::copy, causes)});
    }
  }

  TaskGraph graph_;
  std::vector<TreeShape> shapes_;
  std::map<std::vector<LinkId>, int> hop_of_;
  std::map<std::pair<std::size_t, double>, std::vector<int>> centres_;
};

int most_at_a_time(const EngineOptions& options) {
  constexpr int kMany = 16;
  return options.concurrency == kAnyConcurrency ? kMany : options.concurrency;
}

Schedule schedule_along(const Topology& topology, const SpanningPacking& packing, const Demand& demand,
                        const EngineOptions& options) {
  TreeTasks tasks(topology, packing);
  if (options.policy == kEvenRates)
    tasks.graph().hops = at_even_rates(topology, tasks.graph().hops, most_at_a_time(options));
  std::vector<double> shares;
  for (const WeightedTree& tree : packing.trees) shares.push_back(tree.weight);
  const std::vector<std::size_t> tree_of = deal(shares, demand.num_chunks());
  std::vector<std::size_t> turn(packing.trees.size(), 0);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const ChunkId chunk(c);
    const std::size_t tree = tree_of[c];
    tasks.add_chunk(tree, tasks.root_of(tree, demand.bytes(chunk), turn[tree]++), chunk);
  }
  std::vector<double> rank = times_to_go_us(tasks.graph(), demand);
  const double longest = 1 + *std::ranges::max_element(rank);
  for (std::size_t t = 0; t < rank.size(); ++t) {
    rank[t] = longest * tasks.graph().tasks[t].chunk.value - rank[t];
  }
  return schedule_tasks_there_and_back(topology, demand, tasks.graph(), rank, options.seed,
                                       options.concurrency);
}

/// Edges that lead both ways where they do, pairs of trees where those do better, and trees over relays: the
/// last two not for many GPUs, of which every iteration tries each as a root.
SpanningPacking pack(const Instance& instance, const EngineOptions& options, const Toolbox& tools,
                     LinkUse use) {
  const Topology& topology = *instance.topology;
  const std::vector<GpuId>& members = instance.demand.contributions().front().sources;
  const Deadline deadline = Deadline(options.limits).after(kShareOfPacking);
  const auto pairs = static_cast<double>(members.size() * members.size());
  const int iterations = std::min(kMostPackingIterations, 1 + static_cast<int>(kMostPairsOfPacking / pairs));
  const double enough_us = options.bound_us * (1 + kNearBound);
  std::optional<SpanningPacking> best;
  std::optional<Error> refusal;
  const auto try_packing = [&](const auto& pack_trees) {
    if (best && best->us_per_byte * instance.demand.size_bytes() <= enough_us) return;
    try {
      SpanningPacking found = pack_trees(topology, members, tools.column_master, iterations, deadline, use);
      if (!best || found.us_per_byte < best->us_per_byte * (1 - kNearBound)) best = std::move(found);
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
      refusal = error;
    }
  };
  try_packing(pack_spanning_trees);
  if (members.size() <= kMostRoots) try_packing(pack_rooted_trees);
  if (members.size() < topology.num_gpus() && topology.num_gpus() <= kMostRoots)
    try_packing(pack_relay_trees);
  if (!best) throw *refusal;
  return *std::move(best);
}

/// Each made once it is asked for.
class Packings {
 public:
  Packings(const Instance& instance, const EngineOptions& options, const Toolbox& tools)
      : instance_(instance),
        options_(options),
        tools_(tools),
        all_alike_(!speeds_differ(*instance.topology)) {}

  const Instance& instance() const { return instance_; }

  /// Even rates leave of a link what others can use.
  const SpanningPacking& of(const std::string& policy) {
    const LinkUse use = all_alike_ || policy != kEvenRates ? LinkUse::whole : LinkUse::shared;
    std::optional<SpanningPacking>& packing = packings_[use];
    if (!packing) packing = pack(instance_, options_, tools_, use);
    return *packing;
  }

 private:
  Instance instance_;
  EngineOptions options_;
  Toolbox tools_;
  bool all_alike_;
  std::map<LinkUse, std::optional<SpanningPacking>> packings_ = {};
};

}  // namespace

PreparedEngine prepare_spanning(const Instance& instance, const EngineOptions& options,
                                const Toolbox& tools) {
  if (!is_plain_all_reduce(instance.demand)) {
    throw Error(ExitCode::unavailable,
                "engine spanning does AllReduce: sums of the same GPUs for those GPUs; use --engine auto");
  }
  const auto packings = std::make_shared<Packings>(instance, options, tools);
  return [packings](const Demand& demand, const EngineOptions& asked) {
    const SpanningPacking& packing = packings->of(asked.policy);
    EngineResult result;
    result.schedule = schedule_along(*packings->instance().topology, packing, demand, asked);
    result.metrics["trees"] = static_cast<double>(packing.trees.size());
    result.metrics["tree_throughput_us"] = packing.us_per_byte * demand.size_bytes();
    result.metrics["tree_bound_us"] = packing.bound_us_per_byte * demand.size_bytes();
    result.metrics["columns"] = packing.iterations;
    return result;
  };
}

EngineInfo spanning_engine() {
  return {
      .name = "spanning",
      .help =
          "spanning trees packed by columns, sums in and results out along each, list-scheduled; AllReduce",
      .policies = {kInOrder, kEvenRates},
      .applicable =
          [](const Instance& instance, const EngineOptions&) {
            return is_plain_all_reduce(instance.demand) && instance.topology->num_gpus() <= kMostGpusOfAuto;
          },
      .offers =
          [](const Instance& instance, const EngineOptions& options) {
            const Topology& topology = *instance.topology;
            const bool pays = topology.num_gpus() < topology.num_nodes() && most_at_a_time(options) > 1;
            return [=](const std::string& policy) { return policy != kEvenRates || pays; };
          },
      .work = [](const Demand& demand, const std::string&) { return 4 * demand.num_deliveries(); },
      .combines = true,
      .spreads = false,
      .heeds_bandwidth_steps = true,
      .traits = kContinuousTime,
      .most_pipelined =
          [](const Demand& demand) {
            const auto members = static_cast<double>(demand.contributions().front().destinations.size());
            return std::min(kMostDeliveries, kMostChunksAPair * members * members);
          },
      .prepare = prepare_spanning};
}

}  // namespace rondo
