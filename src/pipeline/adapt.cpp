#include "adapt.hpp"

#include "improve.hpp"
#include "rondo/core/error.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/pipeline/kept_schedule.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

constexpr const char* kPrefix = "kept-";

/// Whether local search can do a round on the kept schedule with its share of the work.
bool is_little_work(const Problem& problem) {
  if (problem.options.engine != "auto" || !is_adapted(problem) || !may_improve(problem)) return false;
  const Demand demand = problem.demand.with_chunks(chunks_of_kept(*problem.start, problem));
  return kTriesPerRound * demand.num_deliveries() <= kShareOfKept * problem.options.improve_work;
}

}  // namespace

std::optional<Exploration> adapt(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                 StopRule& rule, const RunContext& context) {
  if (!is_little_work(problem)) return std::nullopt;
  const Checkpoints::Prefix prefix(context.checkpoints(), kPrefix);
  EngineRunner runner(problem, bounds, tools, context, [](const EngineInfo&) { return false; });
  try {
    Exploration found = explore(problem, runner, rule, context);
    improve(problem, runner, found, rule, context);
    if (rule.stop(found.best.found.schedule->finish_us)) return found;
  } catch (const Error& error) {
    // The kept schedule has no way there; other engines may find one.
    if (error.code() != ExitCode::unavailable) throw;
  }
  return std::nullopt;
}

}  // namespace rondo
