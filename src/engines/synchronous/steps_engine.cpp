#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {
namespace {

std::string question(const StepInstance& instance, const Topology& topology) {
  return fmt::format("{} chunks a contribution, {} steps and {} rounds on '{}'", instance.chunks,
                     instance.steps, instance.rounds, topology.name());
}

EngineResult answered(const Topology& topology, const Demand& demand, const EngineOptions& options,
                      const SatSolver& solver) {
  const StepInstance instance = make_step_instance(topology, demand, options.steps, options.rounds);
  const Deadline deadline(options.limits);
  const StepAnswer found = find_steps(instance, solver, {options.max_conflicts, deadline}, options.proof);
  EngineResult result;
  result.metrics = {{"steps", instance.steps},
                    {"rounds", instance.rounds},
                    {"step_cost_us", step_cost_us(topology, demand, instance.steps, instance.rounds)},
                    {"conflicts", static_cast<double>(found.conflicts)},
                    {"variables", found.variables},
                    {"clauses", static_cast<double>(found.clauses)}};
  if (found.status == SatStatus::satisfiable) {
    result.schedule = schedule_of(*found.plan, topology, demand, options.join);
    result.remarks.push_back(fmt::format("{}: the steps have {} rounds", question(instance, topology),
                                         fmt::join(found.plan->rounds, " + ")));
    return result;
  }
  if (found.status == SatStatus::unsatisfiable) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("there is none: no synchronous algorithm has {} ({} conflicts prove it{}); give more "
                    "rounds or steps, or fewer chunks",
                    question(instance, topology), found.conflicts,
                    options.proof.empty()
                        ? ", --proof FILE writes the proof"
                        : fmt::format("; proof in {}, of the formula {}.cnf", options.proof, options.proof)));
  }
  if (!deadline.is_over()) {
    throw Error(ExitCode::unavailable,
                fmt::format("whether there is an algorithm of {} is open after {} conflicts; give more with "
                            "--max-conflicts, or leave it out",
                            question(instance, topology), found.conflicts));
  }
  result.limits_hit.push_back(deadline.ended_by());
  return result;
}

PreparedEngine prepare_steps(const Instance& instance, const EngineOptions&, const Toolbox& tools) {
  return
      [topology = instance.topology, solver = tools.sat](const Demand& demand, const EngineOptions& options) {
        return answered(*topology, demand, options, *solver);
      };
}

}  // namespace

EngineInfo steps_engine() {
  return {.name = "steps",
          .help =
              "synchronous algorithms in as many steps and rounds as are asked for, by satisfiability, or "
              "the proof that there is none",
          .takes_seeds = false,
          .answers = true,
          .traits = {.on_epoch_grid = false,
                     .counts_epochs = false,
                     .flows_over_time = false,
                     .branches = false,
                     .relaxes_on_a_rank = false,
                     .in_parts = false},
          .prepare = prepare_steps};
}

}  // namespace rondo
