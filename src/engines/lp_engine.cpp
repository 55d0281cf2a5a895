#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "rondo/core/error.hpp"
#include "rondo/engines/bounds.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/steady_flow.hpp"
#include "rounding.hpp"
#include "route_scheduling.hpp"
#include "route_table.hpp"

namespace rondo {
namespace {

/// Flows by origin and link, or their orbits, x epochs; simplex takes about 10 s there.
constexpr double kMaxFlows = 250'000;
/// What simplex may miss of all demand.
constexpr double kDelivered = 1 - 1e-7;

struct TimedFlow {
  FlowField field;
  double delivered = 0;
  int columns = 0;
};

class LeastTimeSearch {
 public:
  LeastTimeSearch(const Instance& instance, const EngineOptions& options, const Toolbox& tools,
                  const SteadyFlow& steady)
      : instance_(instance),
        options_(options),
        tools_(tools),
        columns_per_epoch_(static_cast<double>(steady.columns)) {
    instance_.orbits = steady.orbits;
    instance_.grid = make_epoch_grid(*instance.topology, instance.demand, options.epochs);
  }

  /// The flow of least time on the grid; its number of epochs is in grid().
  TimedFlow run() {
    if (options_.epochs.num_epochs > 0) {
      TimedFlow flow = solve(options_.epochs.num_epochs);
      if (flow.delivered >= kDelivered) return flow;
      throw Error(ExitCode::unavailable,
                  fmt::format("{} epochs of {:.6g} us deliver {:.4g}% of the data; allow more epochs",
                              options_.epochs.num_epochs, grid().tau_us, 100 * flow.delivered));
    }
    const double bound_us = lower_bounds(instance_, tools_, options_.symmetry).best().us;
    int enough = static_cast<int>(std::ceil(bound_us / grid().tau_us - 1e-6));
    int too_few = enough - 1;
    TimedFlow best = solve(enough);
    while (best.delivered < kDelivered) {
      too_few = enough;
      const double missing_us = (1 - best.delivered) * bound_us;
      enough += std::max(1, static_cast<int>(std::ceil(missing_us / grid().tau_us - 1e-6)));
      best = solve(enough);
    }
    while (enough - too_few > 1) {
      const int middle = (too_few + enough) / 2;
      TimedFlow flow = solve(middle);
      if (flow.delivered >= kDelivered) {
        best = std::move(flow);
        enough = middle;
      } else {
        too_few = middle;
      }
    }
    instance_.grid->num_epochs = enough;
    return best;
  }

  const EpochGrid& grid() const { return *instance_.grid; }

 private:
  TimedFlow solve(int epochs) {
    const double flows = columns_per_epoch_ * epochs;
    if (flows > kMaxFlows) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "engine lp: {:.0f} flows by origin and link x {} epochs of {:.6g} us are more than {:.0f}; "
              "use a greater epoch multiplier (--epoch-multiplier {:.0f}) or engine flow",
              columns_per_epoch_, epochs, grid().tau_us, kMaxFlows,
              std::ceil(1.1 * options_.epochs.multiplier * flows / kMaxFlows)));
    }
    instance_.grid->num_epochs = epochs;
    const BuiltModel built = tools_.time_expanded_flow(instance_);
    const Solution solution = optimal(built);
    return {built.decode(solution), -solution.objective, built.model.num_columns()};
  }

  Solution optimal(const BuiltModel& built) const {
    Solution solution = tools_.lp->solve(built.model, options_.limits);
    if (solution.status == SolveStatus::optimal) return solution;
    throw Error(ExitCode::unavailable,
                fmt::format("engine lp: the time-expanded flow of {} columns ended '{}' in {}; raise the "
                            "limit or use engine flow",
                            built.model.num_columns(), to_string(solution.status), tools_.lp->name()));
  }

  Instance instance_;
  const EngineOptions& options_;
  const Toolbox& tools_;
  double columns_per_epoch_;
};

/// Node v at time k is v * times + k. Its arcs: the decoded flows of one origin, and waiting at v from k to k
/// + 1.
class TimedGraph {
 public:
  TimedGraph(const Topology& topology, std::size_t times)
      : topology_(topology), times_(times), graph_{static_cast<int>(topology.num_nodes() * times), {}} {}

  int node(NodeId v, std::size_t k) const { return static_cast<int>(v.index() * times_ + k); }

  void add_flow(const FlowField::Entry& entry, int landing) {
    const Link& link = topology_.link(entry.link);
    const auto k = static_cast<std::size_t>(entry.epoch);
    graph_.arcs.push_back({node(link.src, k), node(link.dst, k + static_cast<std::size_t>(landing))});
    flow_.push_back(entry.amount);
    entries_.push_back(&entry);
  }

  /// To be called after all flows: what has arrived and not yet left waits; at the origin all of it from time
  /// 0.
  void add_waiting(NodeId origin) {
    std::vector<double> gain(topology_.num_nodes() * times_, 0.0);
    const std::size_t flows = graph_.arcs.size();
    for (std::size_t a = 0; a < flows; ++a) {
      gain[static_cast<std::size_t>(graph_.arcs[a].dst)] += flow_[a];
      gain[static_cast<std::size_t>(graph_.arcs[a].src)] -= flow_[a];
      if (graph_.arcs[a].src / static_cast<int>(times_) == origin.value)
        gain[origin.index() * times_] += flow_[a];
    }
    for (std::size_t v = 0; v < topology_.num_nodes(); ++v) {
      double waiting = 0;
      for (std::size_t k = 0; k + 1 < times_; ++k) {
        waiting += gain[v * times_ + k];
        if (waiting <= 0) continue;
        graph_.arcs.push_back({node(NodeId{v}, k), node(NodeId{v}, k + 1)});
        flow_.push_back(waiting);
        entries_.push_back(nullptr);
      }
    }
  }

  const Digraph& graph() const { return graph_; }
  const std::vector<double>& flow() const { return flow_; }
  /// What an arc carries; null while waiting.
  const FlowField::Entry* entry(int arc) const { return entries_[static_cast<std::size_t>(arc)]; }

 private:
  const Topology& topology_;
  std::size_t times_;
  Digraph graph_;
  std::vector<double> flow_;
  std::vector<const FlowField::Entry*> entries_;
};

RouteTable timed_routes(const Topology& topology, const Demand& demand, const TimedFlow& flow,
                        const EpochGrid& grid, const Symmetry& symmetry) {
  const auto times = static_cast<std::size_t>(grid.num_epochs) + 1;
  RouteBuilder builder(topology, demand);
  for (const auto& [origin, contributions] : contributions_by_origin(demand)) {
    TimedGraph timed(topology, times);
    const std::vector<FlowField::Entry> entries = entries_of(topology, symmetry, flow.field, origin);
    for (const FlowField::Entry& entry : entries)
      timed.add_flow(entry, flow.field.link_landing[entry.link.index()]);
    timed.add_waiting(topology.node_of(origin));
    std::vector<Sink> sinks;
    for (const std::size_t i : contributions) {
      const Contribution& c = demand.contributions()[i];
      sinks.push_back(
          {timed.node(topology.node_of(c.destinations.front()), times - 1), c.bytes * flow.delivered});
    }
    const auto paths =
        decompose_flow(timed.graph(), timed.flow(), timed.node(topology.node_of(origin), 0), sinks);
    for (std::size_t k = 0; k < sinks.size(); ++k) {
      for (const FlowPath& path : paths[k]) {
        std::vector<LinkId> links;
        std::vector<double> start_us;
        for (const int a : path.arcs) {
          const FlowField::Entry* entry = timed.entry(a);
          if (entry == nullptr) continue;
          links.push_back(entry->link);
          start_us.push_back(entry->epoch * grid.tau_us);
        }
        builder.add(contributions[k], links, path.amount, start_us);
      }
    }
  }
  return builder.build();
}

}  // namespace

PreparedEngine prepare_lp(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  const auto topology = instance.topology;
  const SteadyFlow steady = reduce(instance, options.symmetry);
  LeastTimeSearch search(instance, options, tools, steady);
  const TimedFlow flow = search.run();
  const auto table = std::make_shared<const RouteTable>(
      timed_routes(*topology, instance.demand, flow, search.grid(), steady.symmetry));
  const std::map<std::string, double> figures{
      {"model_finish_us", flow.field.finish_us},
      {"tau_us", search.grid().tau_us},
      {"epochs", search.grid().num_epochs},
      {"columns", flow.columns},
      {"columns_per_epoch", static_cast<double>(steady.columns)},
      {"columns_per_epoch_without_symmetry", static_cast<double>(steady.all_columns)}};
  return [topology, table, figures](const Demand& demand, const EngineOptions& call) {
    const RoutedChunks routed = round_to_chunks(*topology, demand, *table, RoutingStart::model, call.seed);
    EngineResult result;
    result.schedule = schedule_routes(*topology, table->hops, demand, routed, RouteOrder::model, call.seed);
    result.figures = figures;
    return result;
  };
}

}  // namespace rondo
