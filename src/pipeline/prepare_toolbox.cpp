#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "rondo/bounds/cuts.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/flows/flow_parts.hpp"
#include "rondo/flows/steady_columns.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "rondo/solvers/pdhg.hpp"

namespace rondo {

auto members_of(SameAs<PdhgIterate> auto& i) {
  return std::tie(i.x, i.row_dual, i.primal_weight, i.iterations);
}

namespace {

/// Of the flow, unless a gap is asked for: then a tenth of it, the rest being the schedule's, up to the
/// second one.
constexpr double kColumnGap = 1e-6;
constexpr double kMostColumnGap = 1e-3;
constexpr double kColumnShareOfGap = 0.1;

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

/// One run solves several models; each has states of its own.
PdhgStore pdhg_store(const Communicator& communicator, Checkpoints& checkpoints) {
  const auto name = [](std::uint64_t model) { return fmt::format("pdhg-{:016x}", model); };
  PdhgStore store;
  store.newest = [=, &communicator, &checkpoints](std::uint64_t model) -> std::optional<PdhgIterate> {
    const std::optional<Bytes> found = checkpoints.newest(communicator, name(model));
    if (!found) return std::nullopt;
    return from_message<PdhgIterate>(*found);
  };
  store.offer = [=, &communicator, &checkpoints](std::uint64_t model,
                                                 const std::function<PdhgIterate()>& iterate, bool last) {
    const auto state = [&] { return to_message(iterate()); };
    if (last) {
      checkpoints.keep(communicator, name(model), state);
    } else {
      checkpoints.offer(communicator, name(model), state);
    }
  };
  return store;
}

/// Seconds between two lines about a run.
constexpr double kProgressEvery = 1;

PdhgOptions pdhg_options(const SolveOptions& options, const RunContext& context) {
  PdhgOptions pdhg;
  pdhg.tolerance = options.lp_tolerance;
  pdhg.interrupt = context.interrupt;
  pdhg.store = pdhg_store(context.communicator, context.checkpoints());
  pdhg.progress = [&context, since = Stopwatch()](const PdhgProgress& p) mutable {
    if (since.seconds() < kProgressEvery) return;
    since = {};
    context.tell(fmt::format("pdhg: {} iterations, gap {:.2g}, residuals {:.2g} and {:.2g}", p.iterations,
                             p.gap, p.primal_residual, p.dual_residual));
  };
  return pdhg;
}

}  // namespace

Toolbox prepare_toolbox(const SolveOptions& options, const RunContext& context) {
  const Communicator& communicator = context.communicator;
  Toolbox tools = make_toolbox(options.lp_solver, communicator, pdhg_options(options, context));
  tools.on_all_ranks = options.lp_solver != "clp" || options.decompose != "none";
  const bool solves_flows = options.engine == "lp" || options.engine == "flow";
  if (solves_flows && options.decompose != "none") take_apart(options, communicator, tools);

  ColumnOptions columns;
  columns.gap = options.flow_gap.value_or(
      std::clamp(options.gap_to_meet() * kColumnShareOfGap, kColumnGap, kMostColumnGap));
  columns.limits.time_limit_s = options.time_limit_s.value_or(-1);
  columns.limits.interrupt = context.interrupt;
  columns.checkpoints = &context.checkpoints();
  const auto report = [&context](const ColumnProgress& p) {
    context.tell(fmt::format("columns: flow {:.6g}, bound {:.6g}, gap {:.2g}, {} columns", p.theta, p.bound,
                             p.theta / p.bound - 1, p.columns));
  };
  tools.flow_by_columns = [columns, &communicator, make_master = tools.column_master,
                           report](const Instance& instance) {
    ColumnOptions from_cut = columns;
    from_cut.start_prices = narrowest_cut_prices(*instance.topology, instance.demand);
    return steady_flow_by_columns(instance, from_cut, make_master, communicator, report);
  };
  tools.timed_flow_by_columns = [columns, &communicator, make_master = tools.column_master,
                                 report](const Instance& instance) {
    return timed_flow_by_columns(instance, columns, make_master, communicator, report);
  };
  return tools;
}

}  // namespace rondo
