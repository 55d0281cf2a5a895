#include "known_algorithms.hpp"

#include <algorithm>
#include <iterator>

#include "improve.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/pipeline/registry.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

/// Beyond them tables of all pairs take more memory than anything else of a search.
constexpr std::size_t kMostGpus = 256;
/// Of finish times, what rounding may differ by.
constexpr double kSame = 1e-9;
/// With a time limit, of an engine in one chunk, since it goes on to its end.
constexpr double kMostWorkInTime = 2e4;

/// Whether the engine's algorithm may end before `until_us`, or once its transfers are joined, which may take
/// other paths.
bool may_end_before(const EngineInfo& engine, const Problem& problem, double until_us) {
  const bool combines = problem.demand.kind() == DemandKind::all_reduction;
  if (!engine.is_known_algorithm || (combines ? !engine.combines : !engine.spreads)) return false;
  if (problem.topology->has_bandwidth_steps() && !engine.heeds_bandwidth_steps) return false;
  if (has_limited_relays(*problem.topology, problem.demand)) return false;
  return engine.least_us(problem.instance()) < (may_join(problem) ? kInfinity : until_us * (1 - kSame));
}

bool is_in_time(const EngineInfo& engine, const Problem& problem, const StopRule& rule) {
  if (!problem.options.time_limit_s) return true;
  const double share = may_improve(problem) || may_join(problem) ? kShareOfPortfolio : 1;
  return rule.time_share() < share && engine.work(problem.demand, "") <= kMostWorkInTime;
}

}  // namespace

std::optional<Incumbent> better_known_algorithm(const Problem& problem, const Bounds& bounds,
                                                const Toolbox& tools, Exploration& found, StopRule& rule,
                                                const RunContext& context) {
  if (problem.options.engine != "auto" || problem.start || problem.sketch) return std::nullopt;
  if (problem.topology->num_gpus() > kMostGpus) return std::nullopt;
  std::optional<Incumbent> best;
  double best_us = found.best.found.schedule->finish_us;
  for (const EngineInfo& engine : engine_registry()) {
    if (rule.stop(best_us)) break;
    if (!is_in_time(engine, problem, rule) || !may_end_before(engine, problem, best_us)) continue;
    const Checkpoints::Prefix names(context.checkpoints(), "known-" + engine.name + "-");
    EngineRunner runner(problem, bounds, tools, context, [](const EngineInfo&) { return false; });
    runner.add(engine.name);
    try {
      Exploration known = explore(problem, runner, rule, context);
      std::ranges::move(known.candidates, std::back_inserter(found.candidates));
      // Not both: what is improved without joining may leave less to join. With a time limit improvement
      // would leave nothing to other schedules.
      if (may_join(problem)) {
        join(problem, known.best, rule, context);
      } else if (!problem.options.time_limit_s && known.best.found.schedule->finish_us < best_us) {
        improve(problem, runner, known, rule, context);
      }
      const double finish_us = known.best.found.schedule->finish_us;
      if (finish_us >= best_us * (1 - kSame)) continue;
      best_us = finish_us;
      best = std::move(known.best);
    } catch (const Error& error) {
      // It does not fit the chunks that are asked for, or a limit came first.
      if (error.code() != ExitCode::unavailable) throw;
    }
  }
  return best;
}

}  // namespace rondo
