#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/engines/flow_parts.hpp"
#include "rondo/engines/steady_columns.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {
namespace {

/// Of the flow, unless a gap is asked for: then a tenth of it, the rest being the schedule's.
constexpr double kColumnGap = 1e-6;
constexpr double kShareOfGap = 0.1;

/// Engines lp and flow in parts.
void take_apart(const SolveOptions& options, const Communicator& communicator, Toolbox& tools) {
  if (options.lp_solver != "auto" && options.lp_solver != "clp") {
    throw Error(ExitCode::usage,
                fmt::format("--lp-solver {} works on all ranks at once, --decompose gives each its part; use "
                            "clp",
                            options.lp_solver));
  }
  const Decompose decompose = find_decomposition(options.decompose).decompose;
  const bool by_clusters = options.decompose == "ncflow";
  tools.solve_in_parts = [=, &communicator, parts = options.parts, seed = options.seed, solver = tools.lp](
                             const Instance& whole, const Formulation& formulation,
                             const SolveLimits& limits) {
    if (by_clusters) {
      const auto clusters = decompose(*whole.topology, whole.demand, parts, seed).cluster_of_gpu;
      return solve_by_clusters(whole, clusters, formulation, limits, *solver, communicator);
    }
    return solve_parts(pop_parts(whole, decompose, parts, seed), formulation, limits, *solver, communicator);
  };
}

}  // namespace

Toolbox prepare_toolbox(const SolveOptions& options, const Communicator& communicator,
                        const Progress& progress, const std::atomic<bool>* interrupt) {
  Toolbox tools = make_toolbox(options.lp_solver, options.lp_tolerance, communicator);
  tools.on_all_ranks = options.lp_solver != "clp" || options.decompose != "none";
  const bool solves_flows = options.engine == "lp" || options.engine == "flow";
  if (solves_flows && options.decompose != "none") take_apart(options, communicator, tools);

  ColumnOptions columns;
  columns.gap = std::max(kColumnGap, options.gap.value_or(0) * kShareOfGap);
  columns.limits.time_limit_s = options.time_limit_s.value_or(-1);
  columns.limits.interrupt = interrupt;
  const auto report = [&communicator, progress](const ColumnProgress& p) {
    if (!communicator.is_root()) return;
    progress(fmt::format("columns: flow {:.6g}, bound {:.6g}, gap {:.2g}, {} columns", p.theta, p.bound,
                         p.theta / p.bound - 1, p.columns));
  };
  tools.flow_by_columns = [columns, &communicator, make_master = tools.column_master,
                           report](const Instance& instance) {
    return steady_flow_by_columns(instance, columns, make_master, communicator, report);
  };
  tools.timed_flow_by_columns = [columns, &communicator, make_master = tools.column_master,
                                 report](const Instance& instance) {
    return timed_flow_by_columns(instance, columns, make_master, communicator, report);
  };
  return tools;
}

}  // namespace rondo
