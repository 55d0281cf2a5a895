#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/engines/engines.hpp"
#include "transfers.hpp"

namespace rondo {
namespace {

/// The least number of epochs: what is known about it, and a solution.
struct GridOptimum {
  int infeasible_epochs = 0;  ///< proven: no schedule in so many
  int epochs = 0;             ///< of `field`
  std::optional<FlowField> field = std::nullopt;
  std::int64_t nodes = 0;
  std::vector<std::string> limits_hit = {};

  bool proven() const { return field && epochs == infeasible_epochs + 1; }
};

/// The best that the list scheduler finds, over its policies.
std::optional<Schedule> best_list_schedule(const Topology& topology, const Demand& demand,
                                           const EngineOptions& options, const Toolbox& tools) {
  const Instance instance{std::make_shared<const Topology>(topology), demand};
  EngineOptions list_options = options;
  std::optional<Schedule> best;
  for (const std::string& policy : list_policies()) {
    list_options.policy = policy;
    EngineResult result = list_engine(instance, list_options, tools);
    if (result.schedule && (!best || result.schedule->finish_us < best->finish_us))
      best = std::move(result.schedule);
  }
  return best;
}

/// Asks for schedules in K epochs, for growing K from the first one that the relaxation does not exclude.
/// Feasibility in K epochs is decided far faster than an objective over arrivals is minimised, and the
/// relaxation alone excludes most K.
class EpochSearch {
 public:
  EpochSearch(const Instance& instance, const EngineOptions& options, const Toolbox& tools)
      : instance_(instance), options_(options), tools_(tools) {}

  /// `start`: a schedule of snap_to_grid's fabric, known to exist in `start_epochs`.
  GridOptimum least_epochs(int at_most, int start_epochs, const std::optional<Schedule>& start) {
    exclude_by_relaxation(at_most);
    for (int epochs = optimum_.infeasible_epochs + 1; epochs <= at_most && !optimum_.field; ++epochs) {
      const BuiltModel built = build(epochs);
      const auto x = start && epochs >= start_epochs ? built.encode(*start) : std::nullopt;
      const Solution solution = tools_.milp->solve(built.model, options_.limits, x ? &*x : nullptr);
      optimum_.nodes += solution.nodes;
      if (!solution.x.empty()) {
        optimum_.epochs = epochs;
        optimum_.field = built.decode(solution);
      } else if (solution.status != SolveStatus::infeasible) {
        note_limit(solution);
        if (interrupted()) break;
      } else if (optimum_.infeasible_epochs == epochs - 1) {
        optimum_.infeasible_epochs = epochs;
      }
    }
    return std::move(optimum_);
  }

 private:
  BuiltModel build(int epochs) const {
    Instance instance = instance_;
    instance.grid->num_epochs = epochs;
    return tools_.multicast_milp(instance);
  }

  /// Bisection: what is infeasible in K epochs is infeasible in fewer.
  void exclude_by_relaxation(int at_most) {
    int open = at_most + 1;
    while (optimum_.infeasible_epochs + 1 < open) {
      const int epochs = optimum_.infeasible_epochs + (open - optimum_.infeasible_epochs) / 2;
      LinearModel relaxation = build(epochs).model;
      std::fill(relaxation.integer.begin(), relaxation.integer.end(), char{0});
      const bool infeasible = tools_.lp->solve(relaxation, options_.limits).status == SolveStatus::infeasible;
      (infeasible ? optimum_.infeasible_epochs : open) = epochs;
    }
  }

  bool interrupted() const { return options_.limits.interrupt != nullptr && *options_.limits.interrupt; }

  void note_limit(const Solution& solution) {
    const SolveLimits& limits = options_.limits;
    const bool time = limits.time_limit_s >= 0 && solution.seconds >= limits.time_limit_s;
    const std::string limit = interrupted() ? "interrupted" : time ? "time" : "nodes";
    auto& hit = optimum_.limits_hit;
    if (std::find(hit.begin(), hit.end(), limit) == hit.end()) hit.push_back(limit);
  }

  const Instance& instance_;
  const EngineOptions& options_;
  const Toolbox& tools_;
  GridOptimum optimum_;
};

std::string remark(const GridOptimum& optimum, double tau_us, double grid_us, const Schedule& retimed) {
  std::string text =
      optimum.proven()
          ? fmt::format(
                "optimal on its epoch grid ({} epochs of {:.4g} us; {} are infeasible), which is no "
                "lower bound for schedules in continuous time",
                optimum.epochs, tau_us, optimum.infeasible_epochs)
          : fmt::format(
                "found on its epoch grid in {} epochs of {:.4g} us, not proven optimal there: {} are "
                "infeasible, those between are undecided",
                optimum.epochs, tau_us, optimum.infeasible_epochs);
  if (retimed.finish_us < grid_us * (1 - 1e-9)) {
    text += fmt::format(
        "; started as early as possible in continuous time it ends at {:.6g} us instead of the grid's {:.6g}",
        retimed.finish_us, grid_us);
  }
  return text;
}

EngineResult solve(const Topology& topology, const Demand& demand, const EngineOptions& options,
                   const Toolbox& tools) {
  Instance instance{std::make_shared<const Topology>(topology), demand,
                    make_epoch_grid(topology, demand, options.epochs)};
  const double tau_us = instance.grid->tau_us;
  const Schedule listed = *best_list_schedule(topology, demand, options, tools);
  const auto on_grid = best_list_schedule(snap_to_grid(topology, *instance.grid), demand, options, tools);
  const int listed_epochs = static_cast<int>(std::ceil(on_grid->finish_us / tau_us - 1e-6));

  const int asked = options.epochs.num_epochs;
  // Twice the incumbent's: behind switches it may not fit the grid, whose transfers start at whole epochs.
  const int at_most = asked > 0 ? asked : 2 * listed_epochs;
  GridOptimum optimum = EpochSearch(instance, options, tools).least_epochs(at_most, listed_epochs, on_grid);

  EngineResult result;
  result.figures = {
      {"tau_us", tau_us}, {"nodes", static_cast<double>(optimum.nodes)}, {"proven_optimal_on_grid", 0}};
  result.limits_hit = optimum.limits_hit;
  result.schedule = listed;
  if (!optimum.field) {
    if (asked > 0 && optimum.infeasible_epochs == asked) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "no schedule ends within the {} epochs of {:.4g} us that were asked for; give more epochs or "
              "leave their number to the engine",
              asked, tau_us));
    }
    result.remarks.push_back(
        "a limit ended the search on the epoch grid; this is the list scheduler's schedule");
    return result;
  }
  std::vector<Transfer> transfers = transfers_of(topology, *optimum.field);
  remove_useless(transfers, topology, demand);
  Schedule retimed = retime(transfers, topology, demand);

  const double grid_us = optimum.epochs * tau_us;
  result.figures["grid_epochs"] = optimum.epochs;
  result.figures["grid_finish_us"] = grid_us;
  result.figures["proven_optimal_on_grid"] = optimum.proven() ? 1 : 0;
  result.remarks.push_back(remark(optimum, tau_us, grid_us, retimed));
  if (retimed.finish_us <= listed.finish_us) {
    result.schedule = std::move(retimed);
  } else {
    result.remarks.push_back(fmt::format(
        "the list scheduler, which is not bound to epochs, ends earlier, at {:.6g} us instead of {:.6g}; "
        "this is its schedule",
        listed.finish_us, retimed.finish_us));
  }
  return result;
}

}  // namespace

PreparedEngine prepare_milp(const Instance& instance, const EngineOptions&, const Toolbox& tools) {
  return [topology = instance.topology, tools](const Demand& demand, const EngineOptions& options) {
    return solve(*topology, demand, options, tools);
  };
}

}  // namespace rondo
