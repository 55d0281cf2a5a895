#include "check_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "combining.hpp"
#include "engine_runner.hpp"
#include "late_sums.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "rondo/pipeline/registry.hpp"
#include "round_steps.hpp"
#include "scenarios.hpp"
#include "step_options.hpp"
#include "step_rules.hpp"
#include "tenants.hpp"
#include "without_relays.hpp"

/// What is refused by name before anything is solved.
namespace rondo {
namespace {

void check_bandwidth_steps(const Problem& problem) {
  const std::string& engine = problem.options.engine;
  if (engine == "auto" || find_engine(engine).heeds_bandwidth_steps) return;
  const auto& links = problem.topology->links();
  const auto changing = std::ranges::find_if(links, [](const Link& l) { return !l.bandwidth_steps.empty(); });
  if (changing == links.end()) return;
  throw Error(ExitCode::unavailable,
              fmt::format("link {} of '{}' has bandwidth_steps, and engine {} schedules on bandwidth that "
                          "never changes; use --engine list, or auto",
                          changing - links.begin(), problem.topology->name(), engine));
}

void check_relay_memory(const Problem& problem) {
  const std::string& engine = problem.options.engine;
  if (!has_limited_relays(*problem.topology, problem.demand)) return;
  if (problem.start) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("GPUs of '{}' have little memory for what they only pass on (buffer_bytes, "
                    "--relay-memory), which a schedule of --from does not heed; leave one of them out",
                    problem.topology->name()));
  }
  if (engine == "auto" || heeds_relay_memory(find_engine(engine))) return;
  throw Error(ExitCode::unavailable,
              fmt::format("GPUs of '{}' have little memory for what they only pass on (buffer_bytes, "
                          "--relay-memory), which engine {} does not heed; use --engine list, or auto",
                          problem.topology->name(), engine));
}

void check_early(const Problem& problem) {
  if (problem.options.objective != Objective::early) return;
  const auto refuse = [](const std::string& why) {
    throw Error(ExitCode::unavailable, why + "; use --engine milp for data, or leave --objective early out");
  };
  if (problem.options.engine != "milp")
    refuse(fmt::format("engine {} does not heed --objective early", problem.options.engine));
  if (problem.demand.has_several_sources())
    refuse("sums are made backwards, where early delivery is late departure");
  if (is_shared(problem)) refuse("several tenants have objectives finish and weighted");
}

/// Rounds keep the times of the problem that they solve, and kept schedules theirs.
void check_late_sums(const Problem& problem) {
  if (works_in_rounds(problem) || find_engine_or_auto(problem.options.engine).answers || problem.start) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("parts of sums are not ready at 0 (--ready, or ready_us), which {} does not heed; "
                    "use --engine auto, or leave one of them out",
                    problem.start ? "a schedule of --from" : "engine " + problem.options.engine));
  }
  check_divided(in_parts(on_time(problem)));
}

}  // namespace

void check_divided(const Problem& problem) {
  check_bandwidth_steps(problem);
  check_relay_memory(problem);
  check_steps(problem);
  if (problem.start) chunks_of_kept(*problem.start, problem);
  if (problem.demand.forbids_relays()) return check_divided(on_members(problem));
  switch (problem.demand.kind()) {
    case DemandKind::reduction:
      return check_divided(transposed(problem));
    case DemandKind::all_reduction:
      return check_all_reduction(problem);
    default:
      if (works_in_rounds(problem)) check_rounds(problem);
  }
}

void check_options(const Problem& problem) {
  check_early(problem);
  if (problem.scenarios) return check_scenarios(problem);
  if (is_shared(problem)) return check_tenants(problem);
  if (has_late_sums(problem.demand)) return check_late_sums(problem);
  check_divided(in_parts(problem));
}

}  // namespace rondo
