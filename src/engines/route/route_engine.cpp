#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../steps/task_scheduler.hpp"
#include "contiguity.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/route.hpp"
#include "rondo/model/deadline.hpp"
#include "routing.hpp"

namespace rondo {
namespace {

constexpr std::int64_t kDefaultNodes = 200;
constexpr std::int64_t kMostIterations = 100'000;  ///< of a call of CBC
/// More than any time in us; what a sender relays comes after all of its own.
constexpr double kAfterOwn = 1e15;

struct Ordered {
  TaskGraph graph;
  Schedule schedule;
};

/// TACCL's second step: of what waits for a link the longest path to the end goes first, of equal ones what
/// has come the shortest way.
Ordered ordered(const RouteGraph& graph, const Demand& demand, const RouteTrees& trees,
                const EngineOptions& options) {
  Ordered result;
  result.graph.hops = graph.table().hops();
  std::vector<double> travelled_us, later;
  std::vector<double> load_us(graph.topology().num_links(), 0);
  for (std::size_t c = 0; c < trees.size(); ++c) {
    const ChunkId chunk(c);
    const double bytes = demand.bytes(chunk);
    std::vector<int> arrival(demand.num_gpus(), -1);
    for (const int w : trees[c]) {
      const Way& way = graph.way(w);
      const auto busy_us = [&](int h) {
        double most = 0;
        for (const HopLink& part : graph.table().hop(h).links)
          most = std::max(most, load_us[part.link.index()]);
        return most;
      };
      const int h = *std::ranges::min_element(way.hops, {}, busy_us);
      for (const HopLink& part : graph.table().hop(h).links)
        load_us[part.link.index()] += part.load_us(bytes);
      const int cause = arrival[way.src.index()];
      const double before_us = cause < 0 ? 0 : travelled_us[index(cause)];
      travelled_us.push_back(before_us + graph.table().hop(h).duration_us(bytes));
      const bool relays = graph.sketch() != nullptr && graph.sketch()->own_data_first && way.leaves_node &&
                          way.src != demand.origin(chunk);
      later.push_back(relays ? kAfterOwn : 0);
      arrival[way.dst.index()] =
          result.graph.add(h, chunk, SendOp::copy, cause < 0 ? std::vector<int>{} : std::vector<int>{cause});
    }
  }
  const std::vector<double> to_go_us = times_to_go_us(result.graph, demand);
  const double longest_us = std::max(1.0, *std::ranges::max_element(to_go_us));
  std::vector<double> rank;
  for (std::size_t t = 0; t < to_go_us.size(); ++t)
    rank.push_back(later[t] - to_go_us[t] + 1e-9 * travelled_us[t] / longest_us);
  result.schedule =
      schedule_tasks(graph.topology(), demand, result.graph, rank, options.seed, options.concurrency);
  return result;
}

EngineResult routed(const Topology& topology, const Demand& demand, const Sketch* sketch,
                    const EngineOptions& options, const Solver& milp) {
  if (demand.has_several_sources()) {
    throw Error(
        ExitCode::unavailable,
        "engine route routes data of one source each (sums are those turned round); use --engine auto");
  }
  const Deadline deadline(options.limits);
  const auto limits = [&](double share) {
    SolveLimits own = deadline.left_of(options.limits, share);
    if (own.max_nodes < 0) own.max_nodes = kDefaultNodes;
    own.max_iterations = kMostIterations;
    return own;
  };
  const RouteGraph graph(topology, sketch, demand.bytes(ChunkId{0}));
  const RouteOrbits orbits(graph, demand);
  const Routing routing = route_chunks(graph, demand, orbits, milp, limits(0.7));
  Ordered first = ordered(graph, demand, routing.trees, options);

  EngineResult result;
  result.metrics = {{"routing_columns", routing.columns},
                    {"routing_nodes", static_cast<double>(routing.nodes)},
                    {"ordered_finish_us", first.schedule.finish_us}};
  result.remarks.push_back(fmt::format("routes: {}", routing.origin));
  if (options.join) {
    std::vector<char> may_join;
    for (const Hop& hop : first.graph.hops)
      may_join.push_back(graph.node_of(hop.src) != graph.node_of(hop.dst) ? 1 : 0);
    if (auto joined = contiguous(topology, demand, first.graph, first.schedule, may_join, milp, limits(1)))
      first.schedule = std::move(*joined);
    result.metrics["contiguous_finish_us"] = first.schedule.finish_us;
  }
  if (deadline.is_over()) result.limits_hit.push_back(deadline.ended_by());
  result.schedule = std::move(first.schedule);
  return result;
}

}  // namespace

EngineInfo route_engine(std::shared_ptr<const Sketch> sketch) {
  return {.name = "route",
          .help =
              "TACCL's three steps: routes by an integer program that lets links carry several chunks at "
              "once, an "
              "order on every link, and which chunks travel together between nodes; heeds all of a sketch",
          .traits = {.on_epoch_grid = false,
                     .counts_epochs = false,
                     .flows_over_time = false,
                     .branches = true,
                     .relaxes_on_a_rank = false,
                     .in_parts = false,
                     .shares_links = true},
          .prepare = [sketch = std::move(sketch)](const Instance& instance, const EngineOptions&,
                                                  const Toolbox& tools) -> PreparedEngine {
            return [topology = instance.topology, sketch, milp = tools.milp](const Demand& demand,
                                                                             const EngineOptions& options) {
              return routed(*topology, demand, sketch.get(), options, *milp);
            };
          }};
}

}  // namespace rondo
