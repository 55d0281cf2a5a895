#include <fmt/format.h>

#include <algorithm>

#include "rondo/bounds/cuts.hpp"
#include "rondo/core/error.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/flows/flow_parts.hpp"
#include "rondo/flows/steady_columns.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "time_shares.hpp"

namespace rondo {

namespace {

/// Of the flow, unless a gap is asked for: then a tenth of it, the rest being the schedule's, up to the
/// second one.
constexpr double kColumnGap = 1e-6;
constexpr double kMostColumnGap = 1e-3;
constexpr double kColumnShareOfGap = 0.1;

/// Engines lp and flow in parts.
void take_apart(const DecompositionInfo& decomposition, const LpSolverInfo& lp_solver,
                const SolveOptions& options, const Communicator& communicator, Toolbox& tools) {
  if (!decomposition.solve_flow) {
    throw Error(ExitCode::usage,
                fmt::format("--decompose {} does not take the flows of engine {} apart; leave it out",
                            decomposition.name, options.engine));
  }
  if (!lp_solver.solves_parts) {
    throw Error(ExitCode::usage,
                fmt::format("--lp-solver {} works on all ranks at once, --decompose gives each its part; use "
                            "clp",
                            lp_solver.name));
  }
  tools.solve_in_parts =
      [&communicator, solve_flow = decomposition.solve_flow, parts = options.parts, seed = options.seed,
       solver = tools.lp](const Instance& whole, const Formulation& formulation, const SolveLimits& limits) {
        return solve_flow(whole, parts, seed, [&](const std::vector<Instance>& flows) {
          return solve_each(flows, formulation, limits, *solver, communicator);
        });
      };
}

}  // namespace

Toolbox prepare_toolbox(const SolveOptions& options, const RunContext& context) {
  const Communicator& communicator = context.communicator;
  const LpSolverInfo& lp_solver = find_lp_solver(options.lp_solver);
  const DecompositionInfo& decomposition = find_decomposition(options.decompose);
  Toolbox tools = make_toolbox();
  tools.method = lp_solver.method;
  tools.lp = lp_solver.make(options, context);
  const bool solves_flows = options.engine == "lp" || options.engine == "flow";
  if (solves_flows && !decomposition.is_whole)
    take_apart(decomposition, lp_solver, options, communicator, tools);
  tools.on_all_ranks = lp_solver.on_all_ranks || tools.solve_in_parts;

  ColumnOptions columns;
  columns.gap = options.flow_gap.value_or(
      std::clamp(options.gap_to_meet() * kColumnShareOfGap, kColumnGap, kMostColumnGap));
  columns.checkpoints = &context.checkpoints();
  const auto report = [&context](const ColumnProgress& p) {
    context.tell(fmt::format("columns: flow {:.6g}, bound {:.6g}, gap {:.2g}, {} columns", p.theta, p.bound,
                             p.theta / p.bound - 1, p.columns));
  };
  tools.flow_by_columns = [columns, options, &context, make_master = tools.column_master,
                           report](const Instance& instance) {
    ColumnOptions from_cut = columns;
    from_cut.limits = limits_of_step(options, context, kShareOfBounds);
    from_cut.start_prices = narrowest_cut_prices(*instance.topology, instance.demand);
    return steady_flow_by_columns(instance, from_cut, make_master, context.communicator, report);
  };
  tools.timed_flow_by_columns = [columns, options, &context, make_master = tools.column_master,
                                 report](const Instance& instance) {
    ColumnOptions timed = columns;
    timed.limits = limits_of_step(options, context, kShareOfPreparing);
    return timed_flow_by_columns(instance, timed, make_master, context.communicator, report);
  };
  return tools;
}

}  // namespace rondo
