// Columns give the same answer on any number of ranks, that of the whole linear program; PDHG the same within
// its tolerance.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "of_root.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/steady_columns.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "rondo/solvers/pdhg.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo::columns_test {
namespace {

Instance alltoall(Topology topology) {
  const std::size_t gpus = topology.num_gpus();
  return {std::make_shared<const Topology>(std::move(topology)),
          make_demand(Collective::alltoall, 1e6 * static_cast<double>(gpus), gpus, 1)};
}

Instance damaged_torus() {
  return alltoall(degrade(generate_topology("torus", {{"dims", "4x4"}}), 0.2, 0.3, 0.9, 5));
}

Instance sharing_star() {
  TopologyData data = generate_topology("star", {{"chassis", "2"}, {"intra", "ndv2"}}).data();
  data.shared_bandwidth.push_back({"card", {LinkId{0}, LinkId{1}, LinkId{2}}, 30});
  return alltoall(Topology(std::move(data)));
}

FlowByColumns by_columns(const Instance& instance, const Communicator& communicator) {
  return steady_flow_by_columns(instance, {}, make_clp_column_master, communicator);
}

void expect_the_optimum(const Instance& instance, const Communicator& communicator) {
  const BuiltModel built = make_toolbox().formulation("steady_state_flow")(instance);
  const double exact = built.decode(make_clp_solver()->solve(built.model, {})).finish_us;
  const FlowByColumns steady = by_columns(instance, communicator);
  EXPECT_NEAR(steady.field.finish_us, exact, 1e-6 * exact);
  EXPECT_LE(steady.metrics.at("columns_bound_us"), exact * (1 + 1e-9));
  EXPECT_LE(steady.metrics.at("columns_gap"), 1e-6);
}

TEST(ColumnLoop, FindsTheOptimum) {
  const auto world = make_world_communicator();
  expect_the_optimum(damaged_torus(), *world);
  expect_the_optimum(alltoall(generate_topology("dragonfly", {})), *world);
}

TEST(ColumnLoop, SharedBandwidthCountsForTheFlow) {
  expect_the_optimum(sharing_star(), *make_world_communicator());
}

TEST(ColumnLoop, TheSameOnAnyRanks) {
  const auto world = make_world_communicator();
  const auto found = [](const Communicator& communicator) {
    const FlowByColumns flow = by_columns(damaged_torus(), communicator);
    std::ostringstream text;
    text << std::hexfloat;  // to the bit
    for (const double price : flow.field.link_price) text << price << "\n";
    for (const FlowField::Entry& entry : flow.field.entries) text << entry.amount << "\n";
    return text.str();
  };
  const std::string alone = of_root(*world, [&] { return found(*make_local_communicator()); });
  EXPECT_EQ(found(*world), alone);
}

/// To the bit, but for the times that it took.
std::string text_of(const ColumnSolution& solution) {
  std::ostringstream text;
  text << std::hexfloat << solution.theta << " by " << solution.first_order_steps << " steps and "
       << solution.history.size() << " masters\n";
  for (const double price : solution.row_price) text << "price " << price << "\n";
  for (const std::vector<ArcLoad>& block : solution.flow)
    for (const ArcLoad& load : block) text << load.arc << ": " << load.amount << "\n";
  return text.str();
}

/// No master is called.
ColumnSolution by_first_order_steps(const ConcurrentFlow& flow, const Communicator& communicator) {
  ColumnOptions options;
  options.most_steps = 20000;
  options.likely_steps = 0;
  options.max_iterations = 1;
  return solve_by_columns(flow, options, make_clp_column_master, communicator);
}

TEST(ColumnLoop, FirstOrderStepsFindTheOptimum) {
  const auto world = make_world_communicator();
  for (const Instance& instance :
       {alltoall(degrade(generate_topology("torus", {{"dims", "5x5"}}), 0.2, 0.3, 0.9, 5)),
        damaged_torus()}) {
    const ConcurrentFlow flow = steady_concurrent_flow(*instance.topology, instance.demand);
    const ColumnSolution exact = solve_by_columns(flow, {}, make_clp_column_master, *world);
    EXPECT_EQ(exact.first_order_steps, 0);
    const ColumnSolution steps = by_first_order_steps(flow, *world);
    EXPECT_GT(steps.first_order_steps, 0);
    EXPECT_EQ(steps.status, SolveStatus::optimal);
    EXPECT_NEAR(steps.theta, exact.theta, 1e-6 * exact.theta);
    EXPECT_LE(steps.bound, exact.theta * (1 + 1e-12));
    EXPECT_EQ(text_of(steps), of_root(*world, [&] {
                return text_of(by_first_order_steps(flow, *make_local_communicator()));
              }));
  }
}

TEST(ColumnLoop, TheMetricProvesTheBound) {
  const Instance instance = damaged_torus();
  const FlowByColumns steady = by_columns(instance, *make_world_communicator());
  const double us = bound_of(*instance.topology, instance.demand, MetricCertificate{steady.field.link_price});
  EXPECT_GE(us, steady.field.finish_us * (1 - 1e-6));  // latency adds to it
}

TEST(ColumnLoop, FlowsOverTimeNeedAsManyEpochsAsByClp) {
  const auto world = make_world_communicator();
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "3"}, {"gpus", "2"}}));
  EngineOptions options;
  options.epochs.multiplier = 2;
  Toolbox tools = make_toolbox();
  const auto epochs = [&] {
    const EngineResult result = prepare_lp(instance, options, tools)(instance.demand, options);
    EXPECT_TRUE(result.schedule);
    return result.metrics.at("epochs");
  };
  const double by_clp = epochs();
  tools.method = LpMethod::columns;
  tools.flow_by_columns = [&](const Instance& whole) { return by_columns(whole, *world); };
  tools.timed_flow_by_columns = [&](const Instance& whole) {
    return timed_flow_by_columns(whole, {}, make_clp_column_master, *world);
  };
  EXPECT_EQ(epochs(), by_clp);
}

TEST(ColumnLoop, AnInterruptionLeavesTheFlowOfTheWarmUp) {
  std::atomic<bool> interrupt{true};
  ColumnOptions options;
  options.limits.interrupt = &interrupt;
  const Instance instance = damaged_torus();
  const ColumnSolution solution =
      solve_by_columns(steady_concurrent_flow(*instance.topology, instance.demand), options,
                       make_clp_column_master, *make_world_communicator());
  EXPECT_EQ(solution.status, SolveStatus::feasible);
  EXPECT_EQ(solution.flow.size(), instance.topology->num_gpus());
  EXPECT_GT(solution.bound, 0);
  EXPECT_GE(solution.theta, solution.bound);
}

TEST(ColumnLoop, EndsAfterItsIterationsOfMasters) {
  const auto world = make_world_communicator();
  const Instance instance = damaged_torus();
  const ConcurrentFlow flow = steady_concurrent_flow(*instance.topology, instance.demand);
  const ColumnSolution whole = solve_by_columns(flow, {}, make_clp_column_master, *world);
  ColumnOptions options;
  options.limits.max_iterations = whole.simplex_iterations / 2;
  const ColumnSolution half = solve_by_columns(flow, options, make_clp_column_master, *world);
  EXPECT_EQ(half.status, SolveStatus::feasible);
  EXPECT_GT(half.bound, 0);
  EXPECT_LE(half.bound, whole.theta * (1 + 1e-12));
  EXPECT_GE(half.theta, whole.bound);
  EXPECT_GT(half.simplex_iterations, 0);
  // The last iteration may be one too many.
  EXPECT_LE(half.simplex_iterations, options.limits.max_iterations + 1);
}

/// Options of a loop that leaves its states in `states`, and ends like one that a signal stops once there are
/// `most` of them.
struct Disturbed {
  std::vector<Bytes> states = {};
  std::size_t most = 0;
  std::atomic<bool> interrupt{false};
  Checkpoints checkpoints{{.newest = [this](const std::string&) -> std::optional<Bytes> {
                             if (states.empty()) return std::nullopt;
                             return states.back();
                           },
                           .keep =
                               [this](const std::string&, const Bytes& state) {
                                 states.push_back(state);
                                 if (states.size() == most) interrupt = true;
                               }},
                          0};
  ColumnOptions options(int most_steps) {
    ColumnOptions options;
    options.warm_up = 1;
    options.likely_steps = 0;
    options.most_steps = most_steps;
    options.masters_per_state = 2;
    options.limits.interrupt = &interrupt;
    options.checkpoints = &checkpoints;
    return options;
  }
};

/// Interrupted at its newest of `states` states.
void expect_to_go_on_as_if_undisturbed(int most_steps, std::size_t states) {
  const auto world = make_world_communicator();
  const Instance instance = damaged_torus();
  const ConcurrentFlow flow = steady_concurrent_flow(*instance.topology, instance.demand);
  Disturbed undisturbed;
  const ColumnSolution whole =
      solve_by_columns(flow, undisturbed.options(most_steps), make_clp_column_master, *world);
  ASSERT_EQ(whole.status, SolveStatus::optimal);
  // On the root:
  ASSERT_GE(world->max(static_cast<double>(undisturbed.states.size())), static_cast<double>(states));

  Disturbed run;
  run.most = states;
  EXPECT_NE(solve_by_columns(flow, run.options(most_steps), make_clp_column_master, *world).status,
            SolveStatus::optimal);
  const std::string resumed = of_root(*world, [&] {  // on from its states
    EXPECT_EQ(run.states.size(), states);
    Disturbed again;
    again.states = run.states;
    return text_of(solve_by_columns(flow, again.options(most_steps), make_clp_column_master,
                                    *make_local_communicator()));
  });
  EXPECT_EQ(text_of(whole), resumed);
}

TEST(ColumnLoop, GoesOnFromAStateAsIfUndisturbed) {
  expect_to_go_on_as_if_undisturbed(0, 2);
}

TEST(ColumnLoop, GoesOnAfterFirstOrderStepsAsIfUndisturbed) {
  expect_to_go_on_as_if_undisturbed(20, 1);
}

SynthesisResult in_parts(const std::string& engine, const std::string& decompose,
                         const Communicator& communicator) {
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "2"}, {"intra", "ndv2"}}));
  SolveOptions options;
  options.engine = engine;
  options.chunks = 1;
  options.gap = 1;
  options.decompose = decompose;
  options.parts = decompose == "pop" ? 4 : 0;
  options.epochs.multiplier = 32;
  return synthesize({instance.topology, instance.demand, options}, {communicator});
}

TEST(FlowParts, TheSameScheduleOnAnyRanks) {
  const auto world = make_world_communicator();
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [engine, decompose] :
       {Pair{"flow", "pop"}, Pair{"lp", "pop"}, Pair{"flow", "ncflow"}, Pair{"lp", "ncflow"}}) {
    const SynthesisResult together = in_parts(engine, decompose, *world);
    const std::string alone = of_root(*world, [&, engine = engine, decompose = decompose] {
      return text_of(in_parts(engine, decompose, *make_local_communicator()).proven.schedule);
    });
    EXPECT_EQ(text_of(together.proven.schedule), alone) << engine << decompose;
    EXPECT_LE(together.gap, 1) << engine << decompose;
  }
}

TEST(LpSolvers, NoFlowDeliversMoreThanIsProven) {
  const auto world = make_world_communicator();
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "2"}, {"gpus", "2"}}));
  SolveOptions options;
  options.engine = "lp";
  options.chunks = 1;
  options.gap = 1;
  options.epochs.multiplier = 2;
  for (const DecompositionInfo& decomposition : decompositions()) {
    for (const LpSolverInfo& solver : lp_solvers()) {
      options.decompose = decomposition.name;
      options.lp_solver = solver.name;
      const auto result = [&] { return synthesize({instance.topology, instance.demand, options}, {*world}); };
      if (!decomposition.is_whole && !solver.solves_parts) {
        EXPECT_THROW(result(), Error) << decomposition.name << ' ' << solver.name;
        continue;
      }
      const std::map<std::string, double> metrics = result().metrics;
      const double missed = 3 * options.lp_tolerance;
      EXPECT_GE(metrics.at("delivered"), 1 - missed) << decomposition.name << ' ' << solver.name;
      EXPECT_LE(metrics.at("delivered"), metrics.at("delivered_at_most") + missed)
          << decomposition.name << ' ' << solver.name;
      EXPECT_LE(metrics.at("delivered_at_most"), 1) << decomposition.name << ' ' << solver.name;
    }
  }
}

SynthesisResult synthesized(const std::string& lp_solver, const Communicator& communicator) {
  const Instance instance =
      alltoall(degrade(generate_topology("torus", {{"dims", "3x3"}}), 0.2, 0.3, 0.9, 5));
  SolveOptions options;
  options.engine = "flow";
  options.chunks = 2;
  options.gap = 1;  // the first candidates do
  options.lp_solver = lp_solver;
  return synthesize({instance.topology, instance.demand, options}, {communicator});
}

TEST(LpSolvers, ColumnsGiveTheSameScheduleOnAnyRanks) {
  const auto world = make_world_communicator();
  const SynthesisResult together = synthesized("columns", *world);
  EXPECT_EQ(text_of(together.proven.schedule), of_root(*world, [] {
              return text_of(synthesized("columns", *make_local_communicator()).proven.schedule);
            }));
}

TEST(LpSolvers, PdhgBoundsWhatClpBounds) {
  const auto world = make_world_communicator();
  const SynthesisResult pdhg = synthesized("pdhg", *world);
  const SynthesisResult clp = synthesized("clp", *world);
  EXPECT_NEAR(pdhg.proven.lower_bound->us, clp.proven.lower_bound->us, 1e-4 * clp.proven.lower_bound->us);
  EXPECT_LE(pdhg.gap, 1);
}

TEST(Pdhg, TheSameOnAllRanksAndAsClp) {
  const auto world = make_world_communicator();
  const BuiltModel built = make_toolbox().formulation("steady_state_flow")(damaged_torus());
  const Solution exact = make_clp_solver()->solve(built.model, {});
  const Solution solution = make_pdhg_solver(*world)->solve(built.model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, exact.objective, 1e-4 * exact.objective);
  EXPECT_LE(solution.dual_bound, exact.objective);
  EXPECT_GE(solution.dual_bound, exact.objective * (1 - 1e-3));
  EXPECT_EQ(world->max(solution.objective), -world->max(-solution.objective));
}

TEST(Pdhg, FlowsOverTimeInSharesAsClpHasThemWhole) {
  // AllToAll of 1 MB a pair on a ring of 4 takes 16 MB over links, 2 MB on each of 8. At 0.1 MB an epoch, and
  // with what is sent in an epoch being there two epochs later, 7 of 8 epochs carry 0.7 MB: 0.35 of all.
  const auto world = make_world_communicator();
  Instance instance = alltoall(generate_topology("ring", {{"gpus", "4"}}));
  EpochOptions options;
  options.rule = EpochRule::fixed;
  options.tau_us = 2;
  instance.grid = make_epoch_grid(*instance.topology, instance.demand, options);
  instance.grid->num_epochs = 8;
  const Formulation over_time = make_toolbox().formulation("time_expanded_flow");
  const BuiltModel whole = over_time(instance);
  const Solution exact = make_clp_solver()->solve(whole.model, {});
  ASSERT_NEAR(exact.objective, -0.35, 1e-9);

  const auto pdhg = make_pdhg_solver(*world);
  instance.share = pdhg->share();
  const BuiltModel built = over_time(instance);
  EXPECT_EQ(world->sum(static_cast<double>(built.model.entry_row.size())),
            static_cast<double>(whole.model.entry_row.size()));
  const Solution solution = pdhg->solve(built.model, {});
  ASSERT_EQ(solution.status, SolveStatus::optimal);
  EXPECT_NEAR(solution.objective, exact.objective, 1e-4);
  EXPECT_LE(solution.dual_bound, exact.objective);
  EXPECT_GE(solution.dual_bound, exact.objective - 1e-3);
  double sent = 0;
  for (const FlowField::Entry& entry : built.decode(solution).entries) sent += entry.amount;
  EXPECT_NEAR(sent, 8 * 0.7e6, 1e3);
  EXPECT_EQ(world->max(solution.objective), -world->max(-solution.objective));
}

TEST(Pdhg, GoesOnFromItsNewestIterateOnOtherRanks) {
  const auto world = make_world_communicator();
  const auto alone = make_local_communicator();
  const BuiltModel built = make_toolbox().formulation("steady_state_flow")(damaged_torus());
  const Solution whole = make_pdhg_solver(*alone)->solve(built.model, {});
  ASSERT_EQ(whole.status, SolveStatus::optimal);

  std::optional<PdhgIterate> kept;
  std::uint64_t kept_of = 0;
  std::atomic<bool> interrupt{false};
  PdhgOptions options;
  options.interrupt = &interrupt;
  options.store.offer = [&](std::uint64_t model, const std::function<PdhgIterate()>& iterate, bool last) {
    const PdhgIterate here = iterate();
    interrupt = here.iterations > whole.iterations / 2;
    if (last) kept = here;
    kept_of = model;
  };
  EXPECT_EQ(make_pdhg_solver(*world, options)->solve(built.model, {}).status, SolveStatus::no_solution);
  ASSERT_TRUE(kept);

  PdhgOptions resumed;
  resumed.store.newest = [&](std::uint64_t model) {
    EXPECT_EQ(model, kept_of);
    return kept;
  };
  const Solution rest = make_pdhg_solver(*alone, resumed)->solve(built.model, {});
  ASSERT_EQ(rest.status, SolveStatus::optimal);
  EXPECT_LT(rest.iterations, whole.iterations);
  EXPECT_NEAR(rest.objective, whole.objective, 1e-4 * whole.objective);
}

TEST(Pdhg, FlowsOverTimeFinishAlikeOnAnyRanks) {
  const Instance instance = alltoall(generate_topology("star", {{"chassis", "3"}, {"gpus", "2"}}));
  const auto synthesized_by = [&](const char* lp_solver, const Communicator& communicator) {
    SolveOptions options;
    options.engine = "lp";
    options.chunks = 1;
    options.gap = 1;
    options.lp_solver = lp_solver;
    options.symmetry = false;
    options.epochs.multiplier = 2;
    return synthesize({instance.topology, instance.demand, options}, {communicator});
  };
  const SynthesisResult exact = synthesized_by("clp", *make_local_communicator());
  const SynthesisResult alone = synthesized_by("pdhg", *make_local_communicator());
  const SynthesisResult together = synthesized_by("pdhg", *make_world_communicator());
  EXPECT_EQ(together.metrics.at("epochs"), exact.metrics.at("epochs"));
  EXPECT_NEAR(together.metrics.at("delivered"), together.metrics.at("delivered_at_most"), 1e-4);
  const double finish_us = alone.proven.schedule.finish_us;
  EXPECT_NEAR(together.proven.schedule.finish_us, finish_us, 1e-4 * finish_us);
}

}  // namespace
}  // namespace rondo::columns_test
