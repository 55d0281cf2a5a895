#include "rondo/engines/steady_columns.hpp"

#include <algorithm>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Prices of the cuts around single GPUs and chassis, out and in: where links are damaged, one of them is
/// often the bottleneck.
std::vector<std::vector<double>> cut_prices(const Topology& topology, const Demand& demand,
                                            std::size_t rows) {
  std::vector<std::vector<char>> sides;
  int chassis = 0;
  for (const Node& node : topology.nodes()) chassis = std::max(chassis, node.chassis.value_or(-1) + 1);
  for (int c = 0; c < chassis; ++c) {
    std::vector<char>& side = sides.emplace_back();
    for (const Node& node : topology.nodes()) side.push_back(node.chassis == c ? 1 : 0);
  }
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    sides.emplace_back(topology.num_nodes(), 0)[topology.node_of(GpuId{g}).index()] = 1;
  }
  double best_us = 0;
  std::vector<double> best;
  for (std::vector<char>& side : sides) {
    for (int way = 0; way < 2; ++way) {
      std::vector<double> price(rows, 0.0);
      double bandwidth = 0;
      for (std::size_t l = 0; l < topology.num_links(); ++l) {
        const Link& link = topology.links()[l];
        if (side[link.src.index()] == 0 || side[link.dst.index()] != 0) continue;
        price[l] = 1;
        bandwidth += link.bandwidth_GBps;
      }
      const double us = bandwidth > 0 ? bytes_leaving(topology, demand, side) / bandwidth : 0;
      if (us > best_us) {
        best_us = us;
        best = std::move(price);
      }
      for (char& flag : side) flag = flag != 0 ? 0 : 1;
    }
  }
  std::vector<std::vector<double>> prices;
  if (!best.empty()) prices.push_back(std::move(best));
  return prices;
}

std::map<std::string, double> figures_of(const ColumnSolution& solution) {
  return {{"columns_gap", solution.theta / solution.bound - 1},
          {"columns_masters", static_cast<double>(solution.history.size())},
          {"columns_simplex_iterations", static_cast<double>(solution.simplex_iterations)},
          {"columns_pricing_s", solution.pricing_s},
          {"columns_master_s", solution.master_s}};
}

}  // namespace

FlowByColumns steady_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                     const MakeColumnMaster& make_master, const Communicator& communicator,
                                     const std::function<void(const ColumnProgress&)>& progress) {
  const Topology& topology = *instance.topology;
  const ConcurrentFlow flow = steady_concurrent_flow(topology, instance.demand);
  ColumnOptions with_cuts = options;
  for (std::vector<double>& prices : cut_prices(topology, instance.demand, flow.rows.size()))
    with_cuts.start_prices.push_back(std::move(prices));
  const ColumnSolution solution = solve_by_columns(flow, with_cuts, make_master, communicator, progress);
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
  steady.figures = figures_of(solution);
  steady.figures["columns_bound_us"] = solution.bound;
  return steady;
}

FlowByColumns timed_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                    const MakeColumnMaster& make_master, const Communicator& communicator,
                                    const std::function<void(const ColumnProgress&)>& progress) {
  const Topology& topology = *instance.topology;
  const double tau_us = instance.grid->tau_us;
  FlowByColumns timed;
  timed.figures["theta"] = kInfinity;
  const auto problem = timed_concurrent_flow(topology, instance.demand, tau_us, instance.grid->num_epochs);
  if (!problem) return timed;
  ColumnOptions decide = options;
  decide.enough = 1;
  const ColumnSolution solution =
      solve_by_columns(problem->flow, decide, make_master, communicator, progress);
  if (solution.flow.empty()) {
    throw Error(ExitCode::unavailable,
                "columns: a limit came before the flow over time had a solution; raise the limit");
  }
  timed.figures = figures_of(solution);
  const bool suffices = solution.theta <= 1 + options.gap;
  timed.figures["theta"] = suffices ? solution.theta : solution.bound;
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
