#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/flow_parts.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/steady_flow.hpp"
#include "route_scheduling.hpp"
#include "timed_routes.hpp"

namespace rondo {
namespace {

/// Flows by origin and link, or their orbits, x epochs; simplex takes about 10 s there.
constexpr double kMaxFlows = 250'000;
/// In parts, each of which has a share of them.
constexpr double kMaxFlowsInParts = 1'000'000;
/// What simplex may miss of all demand.
constexpr double kMissing = 1e-7;
/// Solvers of a duality gap miss it times 1 + what is delivered + what can be, both of them at most 1.
constexpr double kGapUnit = 3;

/// Of ever more epochs; few are needed.
constexpr int kMostSolves = 200;

struct TimedFlow {
  FlowField field;
  double delivered = 0;
  int columns = 0;
  double solver_s = 0;
  double delivered_at_most =
      1;  ///< of the whole demand, by the dual bound of the whole flow where there is one
  std::int64_t iterations = 0;
};

/// Epochs at either end of a coarse grid, in longest ways.
constexpr int kFinePaths = 2;
/// Intervals of one length beside each other in a coarse grid, and those of one epoch at its ends.
constexpr int kIntervalsOfALength = 2;
constexpr int kSingleEpochs = 4;

/// Epochs that data needs for the longest of the shortest ways to a destination.
int longest_path_epochs(const Instance& instance, double tau_us) {
  const Topology& topology = *instance.topology;
  std::vector<double> epochs;
  for (const Link& link : topology.links()) epochs.push_back(1 + epochs_covering(link.latency_us, tau_us));
  double longest = 0;
  for (const auto& [origin, contributions] : contributions_by_origin(instance.demand)) {
    const ShortestPaths paths = shortest_paths(topology.graph(), epochs, topology.node_of(origin).value);
    for (const std::size_t c : contributions) {
      const GpuId destination = instance.demand.contributions()[c].destinations.front();
      longest = std::max(longest, paths.distance[topology.node_of(destination).index()]);
    }
  }
  return static_cast<int>(longest);
}

/// Intervals of a coarse grid: single epochs at both ends, then longer and longer ones up to `fine` epochs
/// from the ends, between which one interval is as long as is left. Empty where nothing is.
std::vector<int> coarse_interval_starts(int epochs, int fine) {
  std::vector<int> ends;  // of intervals, counted from the nearest end of time
  int length = 1;
  for (int i = 0, t = 0; t < fine || i < kSingleEpochs; ++i) {
    if (i >= kSingleEpochs && (i - kSingleEpochs) % kIntervalsOfALength == 0) length *= 2;
    ends.push_back(t += length);
  }
  if (2 * ends.back() >= epochs) return {};
  std::vector<int> starts{0};
  starts.insert(starts.end(), ends.begin(), ends.end());
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) starts.push_back(epochs - *end);
  return starts;
}

class LeastTimeSearch {
 public:
  LeastTimeSearch(const Instance& instance, const EngineOptions& options, const Toolbox& tools,
                  const SteadyFlow& steady)
      : instance_(instance),
        options_(options),
        tools_(tools),
        deadline_(options.limits),
        delivered_(1 - std::max(kMissing, kGapUnit * tools.lp->duality_gap())),
        columns_per_epoch_(static_cast<double>(steady.columns)) {
    instance_.orbits = steady.orbits;
    instance_.grid = make_epoch_grid(*instance.topology, instance.demand, options.epochs);
    fine_epochs_ = kFinePaths * longest_path_epochs(instance, grid().tau_us);
  }

  /// The flow of least time on the grid; its number of epochs is in grid().
  TimedFlow run() {
    if (options_.epochs.num_epochs > 0) {
      TimedFlow flow = solve(options_.epochs.num_epochs);
      if (flow.delivered >= delivered_) return flow;
      throw Error(
          ExitCode::unavailable,
          fmt::format("{} epochs of {:.6g} us deliver {:.4g}% of the data; allow more epochs",
                      options_.epochs.num_epochs, grid().tau_us, 100 * std::max(0.0, flow.delivered)));
    }
    const double bound_us = options_.bound_us > 0
                                ? options_.bound_us
                                : lower_bounds(instance_, tools_, options_.symmetry).best().us;
    int enough = static_cast<int>(std::ceil(bound_us / grid().tau_us - 1e-6));
    int too_few = enough - 1;
    TimedFlow best = solve(enough);
    for (int solves = 1; best.delivered < delivered_; ++solves) {
      if (solves == kMostSolves) {
        throw Error(ExitCode::unavailable,
                    fmt::format("engine lp: {} epochs of {:.6g} us still deliver no more than {:.6g}% of the "
                                "data; use longer epochs or engine flow",
                                enough, grid().tau_us, 100 * best.delivered));
      }
      too_few = enough;
      const double missing_us = (1 - best.delivered) * bound_us;
      enough += std::max(1, static_cast<int>(std::ceil(missing_us / grid().tau_us - 1e-6)));
      best = solve(enough);
    }
    while (enough - too_few > 1) {
      const int middle = (too_few + enough) / 2;
      TimedFlow flow;
      try {
        flow = solve(middle);
      } catch (const Error& error) {
        // A limit, on all ranks alike: the best so far is a flow, if not the one of least time.
        if (error.code() != ExitCode::unavailable || std::isinf(deadline_.seconds_left())) throw;
        break;
      }
      if (flow.delivered >= delivered_) {
        best = std::move(flow);
        enough = middle;
      } else {
        too_few = middle;
      }
    }
    take_epochs(enough);
    return best;
  }

  const EpochGrid& grid() const { return *instance_.grid; }
  std::size_t num_intervals() const {
    const std::size_t intervals = instance_.interval_starts.size();
    return intervals > 0 ? intervals : static_cast<std::size_t>(grid().num_epochs);
  }
  /// With the grid and its intervals.
  const Instance& instance() const { return instance_; }

 private:
  /// Sets the grid.
  void take_epochs(int epochs) {
    instance_.grid->num_epochs = epochs;
    const EpochSpacing spacing = options_.epochs.spacing;
    const bool coarse = spacing == EpochSpacing::coarse ||
                        (spacing == EpochSpacing::automatic && columns_per_epoch_ * epochs > kMaxFlows &&
                         tools_.method != LpMethod::program);
    instance_.interval_starts = coarse ? coarse_interval_starts(epochs, fine_epochs_) : std::vector<int>{};
  }

  /// Collective.
  TimedFlow solve_by_columns(int epochs) {
    if (options_.epochs.spacing == EpochSpacing::coarse)
      throw Error(ExitCode::usage,
                  "--lp-solver columns takes uniform epochs; leave --epoch-spacing coarse out");
    instance_.grid->num_epochs = epochs;
    FlowByColumns solved = tools_.timed_flow_by_columns(instance_);
    return {std::move(solved.field), 1 / std::max(1.0, solved.metrics.at("theta"))};
  }

  TimedFlow solve(int epochs) {
    if (tools_.method == LpMethod::columns && tools_.timed_flow_by_columns) return solve_by_columns(epochs);
    take_epochs(epochs);
    const double flows = columns_per_epoch_ * static_cast<double>(num_intervals());
    const double most = tools_.solve_in_parts ? kMaxFlowsInParts : kMaxFlows;
    if (flows > most && tools_.method != LpMethod::program) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "engine lp: {:.0f} flows by origin and link in {} epochs of {:.6g} us are more than {:.0f}; "
              "use a greater epoch multiplier (--epoch-multiplier {:.0f}) or engine flow",
              flows, epochs, grid().tau_us, most,
              std::ceil(1.1 * options_.epochs.multiplier * flows / most)));
    }
    SolvedFlow solved = solve_flow(instance_, tools_.formulation("time_expanded_flow"),
                                   deadline_.left_of(options_.limits), tools_);
    if (solved.status != SolveStatus::optimal) {
      throw Error(ExitCode::unavailable,
                  fmt::format("engine lp: the time-expanded flow of {} columns ended '{}' in {}; raise the "
                              "limit or use engine flow",
                              solved.columns, to_string(solved.status), tools_.lp->name()));
    }
    return {std::move(solved.field),           -solved.objective, solved.columns, solved.largest_part_s,
            std::min(1.0, -solved.dual_bound), solved.iterations};
  }

  Instance instance_;
  const EngineOptions& options_;
  const Toolbox& tools_;
  Deadline deadline_;  ///< of all programs together
  double delivered_;
  double columns_per_epoch_;
  int fine_epochs_ = 0;
};

}  // namespace

PreparedEngine prepare_lp(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  const auto topology = instance.topology;
  if (topology->has_bandwidth_steps() && (tools.solve_in_parts || tools.method == LpMethod::columns)) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("'{}' has bandwidth_steps, and engine lp heeds them as one program alone; leave {} "
                    "out",
                    topology->name(),
                    tools.solve_in_parts ? "--decompose and --parts" : "--lp-solver columns"));
  }
  const SteadyFlow steady =
      reduce(instance, options.symmetry && !tools.solve_in_parts && tools.method != LpMethod::columns);
  LeastTimeSearch search(instance, options, tools, steady);
  const TimedFlow flow = search.run();
  const auto table = std::make_shared<const RouteTable>(
      timed_routes(search.instance(), flow.field, flow.delivered, steady.symmetry));
  const std::map<std::string, double> metrics{
      {"model_finish_us", flow.field.finish_us},
      {"tau_us", search.grid().tau_us},
      {"epochs", search.grid().num_epochs},
      {"intervals", static_cast<double>(search.num_intervals())},
      {"columns", flow.columns},
      {"solver_s", flow.solver_s},
      {"solver_iterations", static_cast<double>(flow.iterations)},
      {"delivered", std::min(1.0, flow.delivered)},
      {"delivered_at_most", flow.delivered_at_most},
      {"columns_per_epoch", static_cast<double>(steady.columns)},
      {"columns_per_epoch_without_symmetry", static_cast<double>(steady.all_columns)}};
  return [topology, table, metrics](const Demand& demand, const EngineOptions& call) {
    const Deadline deadline(call.limits);
    const RoutedChunks routed = round_to_chunks(*topology, demand, *table, RoutingStart::model, call.seed,
                                                deadline.after(kShareOfRounding));
    EngineResult result;
    result.schedule = schedule_routes(*topology, table->hops, demand, routed,
                                      {RouteOrder::model, call.seed, call.concurrency}, deadline);
    if (!result.schedule) return result;
    result.metrics = metrics;
    result.metrics["rounded_us"] = routed.greatest_load_us;
    result.metrics["realised_us"] = result.schedule->finish_us;
    return result;
  };
}

EngineInfo lp_engine() {
  return {.name = "lp",
          .help = "time-expanded linear program of least time, rounded as flow; AllToAll, Scatter, Gather",
          .heeds_bandwidth_steps = true,
          .traits = {.on_epoch_grid = true,
                     .counts_epochs = true,
                     .flows_over_time = true,
                     .branches = false,
                     .relaxes_on_a_rank = false,
                     .in_parts = true,
                     .shares_links = true},
          .prepare = prepare_lp};
}

}  // namespace rondo
