#include "adapt.hpp"

#include "improve.hpp"
#include "rondo/core/error.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

constexpr const char* kPrefix = "kept-";

/// Rounds of local search that there has to be work for where near is enough: fewer seldom find something.
constexpr double kFewestRounds = 8;

}  // namespace

bool is_adapted_first(const Problem& problem) {
  if (problem.options.engine != "auto" || !is_adapted(problem) || !may_improve(problem)) return false;
  const Demand demand = problem.demand.with_chunks(chunks_of_kept(*problem.start, problem));
  const double rounds = problem.options.enough_gap ? kFewestRounds : 1;
  return rounds * kTriesPerRound * demand.num_deliveries() <= kShareOfKept * problem.options.improve_work;
}

std::optional<Adapted> adapt(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                             StopRule& rule, const RunContext& context) {
  if (!is_adapted_first(problem)) return std::nullopt;
  const Checkpoints::Prefix prefix(context.checkpoints(), kPrefix);
  EngineRunner runner(problem, bounds, tools, context, [](const EngineInfo&) { return false; });
  try {
    Exploration found = explore(problem, runner, rule, context);
    improve(problem, runner, found, rule, context, kShareOfKept);
    const bool is_enough = rule.stop(found.best.found.schedule->finish_us);
    return Adapted{std::move(found), is_enough};
  } catch (const Error& error) {
    // The kept schedule has no way there; other engines may find one.
    if (error.code() != ExitCode::unavailable) throw;
  }
  return std::nullopt;
}

}  // namespace rondo
