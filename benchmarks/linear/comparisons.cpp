#include "comparisons.hpp"

#include <cmath>
#include <cstdio>

#include "case_runner.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/flows/steady_flow.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::benchmarks::linear {
namespace {

/// Of the steady state's time as well.
constexpr int kEpochs = 16;

Instance alltoall(const std::string& fabric) {
  const auto topology = std::make_shared<const Topology>(load_topology(fabric));
  return {topology, make_demand(Collective::alltoall, 1e9, topology->num_gpus(), 1)};
}

/// One way: columns of the model, seconds in all, the value where there is one.
Json path(const std::string& name, std::size_t columns, double seconds, const std::optional<double>& value) {
  std::printf("  %-10s %8zu columns %9.3f s  ", name.c_str(), columns, seconds);
  std::printf(value ? "%.9g\n" : "ended at a limit\n", value.value_or(0));
  std::fflush(stdout);
  Json row{{"way", name}, {"columns", columns}, {"seconds", seconds}};
  row["value"] = value ? Json(*value) : Json(nullptr);
  return row;
}

Json steady_path(const std::string& name, const Instance& instance, const Toolbox& tools, bool use_symmetry,
                 double time_limit_s) {
  SolveLimits limits;
  limits.time_limit_s = time_limit_s;
  const Stopwatch clock;
  const SteadyFlow flow = solve_steady_flow(instance, tools, use_symmetry, limits);
  const double seconds = clock.seconds();
  return path(name, flow.columns, seconds, flow.field ? std::optional(flow.field->finish_us) : std::nullopt);
}

Json timed_path(const std::string& name, Instance instance, const Toolbox& tools, bool use_symmetry,
                double time_limit_s) {
  SolveLimits limits;
  limits.time_limit_s = time_limit_s;
  const Stopwatch clock;
  instance.orbits = reduce(instance, use_symmetry).orbits;
  const BuiltModel built = tools.formulation("time_expanded_flow")(instance);
  const Solution solution = tools.lp->solve(built.model, limits);
  return path(name, static_cast<std::size_t>(built.model.num_columns()), clock.seconds(),
              solution.status == SolveStatus::optimal ? std::optional(-solution.objective) : std::nullopt);
}

Json compared(const std::string& what, const std::string& fabric, const Json& first, const Json& second) {
  Json row{{"what", what}, {"fabric", fabric}, {"ways", {first, second}}, {"difference", nullptr}};
  if (first["value"].is_null() || second["value"].is_null()) return row;
  const double difference = std::abs(first["value"].get<double>() / second["value"].get<double>() - 1);
  row["difference"] = difference;
  std::printf("  relative difference %.1e, %.0f times fewer columns, %.3g times as fast\n", difference,
              second["columns"].get<double>() / first["columns"].get<double>(),
              second["seconds"].get<double>() / first["seconds"].get<double>());
  std::fflush(stdout);
  return row;
}

Toolbox simplex() {
  Toolbox tools = make_toolbox();
  tools.method = LpMethod::program;
  return tools;
}

}  // namespace

Json compare_orbits(const std::string& fabric, double time_limit_s) {
  std::printf("steady-state flow, %s\n", fabric.c_str());
  const Instance instance = alltoall(fabric);
  const Json reduced = steady_path("orbits", instance, simplex(), true, time_limit_s);
  return compared("orbits", fabric, reduced, steady_path("whole", instance, simplex(), false, time_limit_s));
}

Json compare_orbits_over_time(const std::string& fabric, double time_limit_s) {
  std::printf("flow over time, %s\n", fabric.c_str());
  Instance instance = alltoall(fabric);
  const SteadyFlow steady = solve_steady_flow(instance, simplex(), true, {});
  EpochOptions epochs;
  epochs.rule = EpochRule::fixed;
  epochs.tau_us = steady.field->finish_us / kEpochs;
  instance.grid = make_epoch_grid(*instance.topology, instance.demand, epochs);
  instance.grid->num_epochs = kEpochs;
  const Json reduced = timed_path("orbits", instance, simplex(), true, time_limit_s);
  return compared("orbits over time", fabric, reduced,
                  timed_path("whole", instance, simplex(), false, time_limit_s));
}

Json compare_columns(const std::string& fabric, double time_limit_s) {
  std::printf("steady-state flow, %s, damaged\n", fabric.c_str());
  Instance instance = alltoall(fabric);
  instance.topology = std::make_shared<const Topology>(degrade(*instance.topology, 0.05, 0.5, 0.9, 1));
  const auto alone = make_local_communicator();
  SolveOptions options;
  options.lp_solver = "columns";
  const RunContext context{*alone};
  const Toolbox columns = prepare_toolbox(options, context);
  const Json by_columns = steady_path("columns", instance, columns, false, time_limit_s);
  return compared("columns", fabric, by_columns,
                  steady_path("simplex", instance, simplex(), false, time_limit_s));
}

Json measure_bound(const std::filesystem::path& rondo, const std::string& fabric) {
  double wall_s = 0;
  const int code = run_command(
      {rondo.string(), "bound", "--topology", fabric, "--collective", "alltoall", "--size", "1GB"}, &wall_s);
  std::printf("rondo bound, %s: %.2f s, exit code %d\n", fabric.c_str(), wall_s, code);
  std::fflush(stdout);
  return {{"what", "bound"}, {"fabric", fabric}, {"seconds", wall_s}, {"exit_code", code}};
}

}  // namespace rondo::benchmarks::linear
