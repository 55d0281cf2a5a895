#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "list/list_rules.hpp"
#include "rondo/core/early_delivery.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/model/deadline.hpp"
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

  bool is_earliest = false;  ///< proven: of as many epochs none has a greater reward of early delivery

  bool proven() const { return field && epochs == infeasible_epochs + 1; }
};

/// The best that the list scheduler finds, over its policies.
Schedule best_list_schedule(const Topology& topology, const Demand& demand, const EngineOptions& options,
                            const Toolbox& tools) {
  const Instance instance{std::make_shared<const Topology>(topology), demand};
  const PreparedEngine list = prepare_list(instance, options, tools);
  EngineOptions list_options = options;
  list_options.limits = {};  // takes moments, and some schedule there has to be
  Schedule best;
  best.finish_us = kInfinity;
  for (const std::string& policy : list_policies_of_models()) {
    list_options.policy = policy;
    EngineResult result = list(demand, list_options);
    if (result.schedule) result.schedule = in_memory(topology, demand, *std::move(result.schedule));
    if (result.schedule && result.schedule->finish_us < best.finish_us) best = std::move(*result.schedule);
  }
  return best;
}

/// Asks for schedules in K epochs, for growing K from the first one that the relaxation does not exclude.
/// Feasibility in K epochs is decided far faster than an objective over arrivals is minimised, and the
/// relaxation alone excludes most K.
class EpochSearch {
 public:
  EpochSearch(const Instance& instance, const EngineOptions& options, const Toolbox& tools)
      : instance_(instance), options_(options), tools_(tools), deadline_(options.limits) {}

  /// `incumbent` is a schedule of snap_to_grid's topology that takes `incumbent_epochs`: where nothing better
  /// is found it is the solution, if it fits the grid.
  GridOptimum least_epochs(int at_most, int incumbent_epochs, const Schedule& incumbent) {
    exclude_by_relaxation(std::min(at_most, incumbent_epochs));
    for (int epochs = optimum_.infeasible_epochs + 1; epochs <= at_most; ++epochs) {
      if (ask(epochs, epochs >= incumbent_epochs ? &incumbent : nullptr)) break;
    }
    return std::move(optimum_);
  }

  /// Of schedules in so many epochs the one of the greatest reward of early delivery, as far as limits let it
  /// be found, in place of `optimum`'s.
  void prefer_early(int epochs, GridOptimum& optimum) {
    const BuiltModel built = build(epochs, true);
    const Solution solution = tools_.milp->solve(built.model, limits());
    optimum.nodes += solution.nodes;
    if (solution.x.empty()) return;
    optimum.epochs = epochs;
    optimum.field = built.decode(solution);
    optimum.is_earliest = solution.status == SolveStatus::optimal;
  }

 private:
  BuiltModel build(int epochs, bool rewards_early = false) const {
    Instance instance = instance_;
    instance.grid->num_epochs = epochs;
    instance.rewards_early = rewards_early;
    return tools_.formulation("multicast_milp")(instance);
  }

  /// Bisection: what is infeasible in K epochs is infeasible in fewer.
  void exclude_by_relaxation(int at_most) {
    int open = at_most + 1;
    while (optimum_.infeasible_epochs + 1 < open && !deadline_.is_over()) {
      const int epochs = optimum_.infeasible_epochs + (open - optimum_.infeasible_epochs) / 2;
      LinearModel relaxation = build(epochs).model;
      std::fill(relaxation.integer.begin(), relaxation.integer.end(), char{0});
      const bool infeasible = tools_.lp->solve(relaxation, limits()).status == SolveStatus::infeasible;
      (infeasible ? optimum_.infeasible_epochs : open) = epochs;
    }
  }

  /// Returns whether the search has to end.
  bool ask(int epochs, const Schedule* incumbent) {
    const BuiltModel built = build(epochs);
    Solution solution;
    if (auto x = incumbent != nullptr ? built.encode(*incumbent) : std::nullopt) {
      solution.x = std::move(*x);
    } else {
      solution = tools_.milp->solve(built.model, limits());
      optimum_.nodes += solution.nodes;
    }
    if (!solution.x.empty()) {
      optimum_.epochs = epochs;
      optimum_.field = built.decode(solution);
    } else if (solution.status == SolveStatus::infeasible) {
      if (optimum_.infeasible_epochs == epochs - 1) optimum_.infeasible_epochs = epochs;
    } else {
      if (!deadline_.is_over()) hit("nodes");
    }
    if (!optimum_.field && deadline_.is_over()) hit(deadline_.ended_by());
    return optimum_.field || deadline_.is_over();
  }

  void hit(const std::string& limit) {
    auto& limits = optimum_.limits_hit;
    if (std::ranges::find(limits, limit) == limits.end()) limits.push_back(limit);
  }

  SolveLimits limits() const { return deadline_.left_of(options_.limits); }

  const Instance& instance_;
  const EngineOptions& options_;
  const Toolbox& tools_;
  Deadline deadline_;  ///< of all calls together
  GridOptimum optimum_;
};

std::string remark(const GridOptimum& optimum, double tau_us, double grid_us, const Schedule& retimed) {
  std::string text =
      optimum.proven()
          ? fmt::format(
                "optimal on its epoch grid, {} epochs of {:.4g} us, which is no lower bound in continuous "
                "time",
                optimum.epochs, tau_us)
          : fmt::format("not proven optimal on its epoch grid: {} epochs of {:.4g} us, and {} are too few",
                        optimum.epochs, tau_us, optimum.infeasible_epochs);
  if (retimed.finish_us < grid_us * (1 - 1e-9)) {
    text += fmt::format(
        "; with every send started as early as it can, it ends at {:.6g} us instead of the grid's {:.6g} us",
        retimed.finish_us, grid_us);
  }
  return text;
}

EngineResult solve(const Topology& topology, const Demand& demand, const EngineOptions& options,
                   const Toolbox& tools) {
  Instance instance{std::make_shared<const Topology>(topology), demand,
                    make_epoch_grid(topology, demand, options.epochs)};
  const double tau_us = instance.grid->tau_us;
  const Schedule listed = best_list_schedule(topology, demand, options, tools);
  const Schedule on_grid = best_list_schedule(snap_to_grid(topology, *instance.grid), demand, options, tools);
  const bool is_listed = std::isfinite(listed.finish_us) && std::isfinite(on_grid.finish_us);
  const int listed_epochs = is_listed ? static_cast<int>(std::ceil(on_grid.finish_us / tau_us - 1e-6))
                                      : upper_bound_epochs(topology, demand, *instance.grid);

  // Not the incumbent's number: behind switches it may not fit the grid, where transfers start at whole
  // epochs.
  const int asked = options.epochs.num_epochs;
  const int at_most = asked > 0 ? asked : is_listed ? std::numeric_limits<int>::max() : listed_epochs;
  EpochSearch search(instance, options, tools);
  GridOptimum optimum = search.least_epochs(at_most, listed_epochs, on_grid);
  if (options.early && optimum.field) search.prefer_early(asked > 0 ? asked : optimum.epochs, optimum);

  EngineResult result;
  result.metrics = {
      {"tau_us", tau_us}, {"nodes", static_cast<double>(optimum.nodes)}, {"proven_optimal_on_grid", 0}};
  result.limits_hit = optimum.limits_hit;
  if (std::isfinite(listed.finish_us)) result.schedule = listed;
  if (!optimum.field) {
    if (asked > 0 && optimum.infeasible_epochs == asked) {
      throw Error(
          ExitCode::unavailable,
          fmt::format(
              "no schedule ends within the {} epochs of {:.4g} us that were asked for; give more epochs or "
              "leave their number to the engine",
              asked, tau_us));
    }
    if (!result.schedule) return result;
    result.remarks.push_back(
        "a limit ended the search on the epoch grid; this is the list scheduler's schedule");
    return result;
  }
  Schedule retimed =
      retimed_from_grid(topology, demand, sends_on_grid(topology, demand, *optimum.field, tau_us));

  const double grid_us = optimum.epochs * tau_us;
  result.metrics["grid_epochs"] = optimum.epochs;
  result.metrics["grid_finish_us"] = grid_us;
  result.metrics["proven_optimal_on_grid"] = optimum.proven() ? 1 : 0;
  result.remarks.push_back(remark(optimum, tau_us, grid_us, retimed));
  if (options.early) {
    result.metrics["early_delivery"] =
        early_delivery(topology, demand, retimed.sends, tau_us, optimum.epochs);
    result.metrics["proven_earliest_on_grid"] = optimum.is_earliest ? 1 : 0;
    result.schedule = std::move(retimed);
  } else if (retimed.finish_us <= listed.finish_us) {
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

EngineInfo milp_engine() {
  return {.name = "milp",
          .help = "multicast integer program, exact on its epoch grid; up to about 8 GPUs",
          .traits = {.on_epoch_grid = true,
                     .counts_epochs = true,
                     .flows_over_time = false,
                     .branches = true,
                     .relaxes_on_a_rank = true,
                     .in_parts = false},
          .prepare = prepare_milp};
}

}  // namespace rondo
