#include "rondo/flows/steady_columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Of the first-order method: fabrics of up to 256 GPUs took at most 3000.
constexpr int kMostSteps = 20000;

std::map<std::string, double> metrics_of(const ColumnSolution& solution) {
  return {{"columns_gap", solution.theta / solution.bound - 1},
          {"columns_masters", static_cast<double>(solution.history.size())},
          {"columns_simplex_iterations", static_cast<double>(solution.simplex_iterations)},
          {"columns_first_order_steps", static_cast<double>(solution.first_order_steps)},
          {"columns_pricing_s", solution.pricing_s},
          {"columns_steps_s", solution.steps_s},
          {"columns_master_s", solution.master_s}};
}

}  // namespace

FlowByColumns steady_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                     const MakeColumnMaster& make_master, const Communicator& communicator,
                                     const std::function<void(const ColumnProgress&)>& progress) {
  const Topology& topology = *instance.topology;
  const ConcurrentFlow flow = steady_concurrent_flow(topology, instance.demand);
  ColumnOptions own = options;
  own.most_steps = kMostSteps;
  // Bounds are of the links alone, engines of what they share as well: two flows of one run.
  if (!topology.shared_bandwidth().empty()) own.state_name += "-shared";
  for (std::vector<double>& price : own.start_prices) price.resize(flow.rows.size(), 0.0);
  const ColumnSolution solution = solve_by_columns(flow, own, make_master, communicator, progress);
  if (solution.flow.empty()) {
    throw Error(ExitCode::unavailable,
                "columns: a limit came before the steady-state flow had a solution; raise the limit");
  }
  FlowByColumns steady;
  steady.field.finish_us = solution.theta;
  for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
    const int origin = topology.gpu_of(NodeId{flow.blocks[b].source}).value;
    for (const ArcLoad& load : solution.flow[b])
      steady.field.entries.push_back({origin, LinkId{load.arc}, 0, load.amount});
  }
  const auto links = static_cast<std::ptrdiff_t>(topology.num_links());
  steady.field.link_price.assign(solution.row_price.begin(), solution.row_price.begin() + links);
  steady.metrics = metrics_of(solution);
  steady.metrics["columns_bound_us"] = solution.bound;
  return steady;
}

FlowByColumns timed_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                    const MakeColumnMaster& make_master, const Communicator& communicator,
                                    const std::function<void(const ColumnProgress&)>& progress) {
  const Topology& topology = *instance.topology;
  const double tau_us = instance.grid->tau_us;
  FlowByColumns timed;
  timed.metrics["theta"] = kInfinity;
  const auto problem = timed_concurrent_flow(topology, instance.demand, tau_us, instance.grid->num_epochs);
  if (!problem) return timed;
  ColumnOptions decide = options;
  decide.enough = 1;
  decide.state_name += fmt::format("-{}-epochs", instance.grid->num_epochs);
  const ColumnSolution solution =
      solve_by_columns(problem->flow, decide, make_master, communicator, progress);
  const bool suffices = solution.theta <= 1 + decide.gap;
  if (!suffices && solution.bound <= 1 + decide.gap) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("columns: a limit came before it was known whether {} epochs suffice for a flow over "
                    "time; raise the limit",
                    instance.grid->num_epochs));
  }
  timed.metrics = metrics_of(solution);
  timed.metrics["theta"] = suffices ? solution.theta : solution.bound;
  if (!suffices) return timed;
  for (std::size_t b = 0; b < problem->flow.blocks.size(); ++b) {
    const int times = instance.grid->num_epochs + 1;
    const int origin = topology.gpu_of(NodeId{problem->flow.blocks[b].source / times}).value;
    for (const ArcLoad& load : solution.flow[b]) {
      const auto arc = static_cast<std::size_t>(load.arc);
      if (arc >= problem->sends.size()) continue;  // waiting
      const TimedConcurrentFlow::Send& send = problem->sends[arc];
      timed.field.entries.push_back({origin, send.link, send.epoch, load.amount, send.lands});
      timed.field.finish_us = std::max(timed.field.finish_us, send.lands * tau_us);
    }
  }
  return timed;
}

}  // namespace rondo
