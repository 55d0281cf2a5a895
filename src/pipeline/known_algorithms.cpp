#include "known_algorithms.hpp"

#include <algorithm>
#include <iterator>

#include "improve.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/engines/synchronous.hpp"
#include "rondo/pipeline/frontier.hpp"
#include "rondo/pipeline/registry.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

/// Beyond them tables of all pairs take more memory than anything else of a search.
constexpr std::size_t kMostGpus = 256;
/// Beyond so many GPUs they take long in many chunks, for at most so much of the bound.
constexpr std::size_t kFewGpusOfAlgorithms = 32;
constexpr double kLittleGain = 1e-3;
/// Of finish times, what rounding may differ by.
constexpr double kSame = 1e-9;
/// With a time limit, of an engine in one chunk, since it goes on to its end.
constexpr double kMostWorkInTime = 2e4;
/// Of synchronous algorithms: GPUs; rounds beyond the steps, and steps beyond the fewest; conflicts of one
/// question.
constexpr std::size_t kMostGpusOfSteps = 8;
constexpr int kMoreRounds = 6;
constexpr int kMoreSteps = 2;
constexpr std::int64_t kMostConflicts = 100'000;

/// Whether the engine's algorithm may end before `until_us`, or once its transfers are joined, which may take
/// other paths.
bool may_end_before(const EngineInfo& engine, const Problem& problem, double until_us) {
  const bool combines = problem.demand.kind() == DemandKind::all_reduction;
  if (!engine.is_known_algorithm || (combines ? !engine.combines : !engine.spreads)) return false;
  if (problem.topology->has_bandwidth_steps() && !engine.heeds_bandwidth_steps) return false;
  if (has_limited_relays(*problem.topology, problem.demand)) return false;
  return engine.least_us(problem.instance()) < (may_join(problem) ? kInfinity : until_us * (1 - kSame));
}

bool weighs_algorithms(const Problem& problem) {
  return problem.options.engine == "auto" && !problem.start && !problem.sketch &&
         problem.topology->num_gpus() <= kMostGpus;
}

/// Sums for several GPUs each go to quick algorithms before anything else.
bool went_first(const EngineInfo& engine, const Problem& problem, const Exploration& found) {
  return problem.demand.kind() == DemandKind::all_reduction && engine.goes_first &&
         std::ranges::any_of(found.candidates, [&](const SynthesisResult::Candidate& candidate) {
           return candidate.engine.starts_with(engine.name);
         });
}

/// Whether known algorithms could gain little beside what they take.
bool gain_little(const Problem& problem, const Bounds& bounds, double finish_us) {
  return problem.topology->num_gpus() > kFewGpusOfAlgorithms &&
         finish_us <= bounds.best().us * (1 + kLittleGain);
}

bool is_in_time(const EngineInfo& engine, const Problem& problem, const StopRule& rule) {
  if (!problem.options.time_limit_s) return true;
  const double share = may_improve(problem) || may_join(problem) ? kShareOfPortfolio : 1;
  return rule.time_share() < share && engine.work(problem.demand, "") <= kMostWorkInTime;
}

/// Collective. A fault of an engine, which all ranks know, is told of and costs no more than its schedule:
/// there is one already.
std::optional<Exploration> explore_unless_faulty(const Problem& problem, EngineRunner& runner, StopRule& rule,
                                                 const RunContext& context, Exploration& found) {
  try {
    Exploration known = explore(problem, runner, rule, context);
    std::ranges::move(known.candidates, std::back_inserter(found.candidates));
    return known;
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    found.best.found.remarks.push_back(left_out(error));
    return std::nullopt;
  }
}

/// SCCL's algorithms (rondo/pipeline/frontier.hpp) send few messages for as much bandwidth as there is, which
/// pays where messages cost: the one of least cost, if that is before `until_us`. Nothing where
/// satisfiability takes long: many GPUs, or one that all data comes from.
std::optional<FrontierTrial> best_synchronous(const Problem& problem, const Bounds& bounds, double until_us,
                                              const RunContext& context) {
  const Topology& topology = *problem.topology;
  const Demand& demand = problem.demand;
  if (problem.options.chunks > 0 || problem.options.time_limit_s || !topology.has_message_costs())
    return std::nullopt;
  if (demand.kind() == DemandKind::all_reduction || topology.num_gpus() > kMostGpusOfSteps ||
      demand.contributions().size() < topology.num_gpus() || has_limited_relays(topology, demand))
    return std::nullopt;
  std::optional<FrontierTrial> best;
  try {
    const int least = least_steps(make_step_instance(topology, demand, 1, 1));
    // Where latencies decide, others find schedules as good.
    if (bounds.best().us < 2 * step_cost_us(topology, demand, least, 0)) return std::nullopt;
    const Frontier frontier = walk_frontier(
        problem,
        {.extra_rounds = kMoreRounds, .most_steps = least + kMoreSteps, .max_conflicts = kMostConflicts},
        context);
    for (const FrontierPoint& point : frontier.points) {
      const double cost_us = step_cost_us(topology, demand.with_chunks(point.trial.chunks), point.trial.steps,
                                          point.trial.rounds);
      if (cost_us >= until_us * (1 - kSame)) continue;
      until_us = cost_us;
      best = point.trial;
    }
  } catch (const Error& error) {
    // Fabrics that have none, or an interrupt, which whoever calls sees too.
    if (error.code() != ExitCode::unavailable && error.code() != ExitCode::stopped) throw;
  }
  return best;
}

}  // namespace

std::vector<Incumbent> known_algorithms(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                        Exploration& found, StopRule& rule, const RunContext& context) {
  std::vector<Incumbent> all;
  if (!weighs_algorithms(problem)) return all;
  double best_us = found.best.found.schedule->finish_us;
  for (const EngineInfo& engine : engine_registry()) {
    if (rule.stop(best_us) || gain_little(problem, bounds, best_us)) break;
    if (!is_in_time(engine, problem, rule) || !may_end_before(engine, problem, best_us) ||
        went_first(engine, problem, found))
      continue;
    const Checkpoints::Prefix names(context.checkpoints(), "known-" + engine.name + "-");
    EngineRunner runner(problem, bounds, tools, context, [](const EngineInfo&) { return false; });
    runner.add(engine.name);
    try {
      std::optional<Exploration> known = explore_unless_faulty(problem, runner, rule, context, found);
      if (!known) continue;
      // Not both: what is improved without joining may leave less to join. With a time limit improvement
      // would leave nothing to other schedules.
      if (!may_join(problem) && !problem.options.time_limit_s &&
          known->best.found.schedule->finish_us < best_us)
        improve(problem, runner, *known, rule, context, share_of_work(problem));
      const double finish_us = known->best.found.schedule->finish_us;
      if (finish_us < best_us * (1 - kSame)) {
        best_us = finish_us;
      } else if (!may_join(problem)) {
        continue;
      }
      all.push_back(std::move(known->best));
    } catch (const Error& error) {
      // It does not fit the chunks that are asked for, or a limit came first.
      if (error.code() != ExitCode::unavailable) throw;
    }
  }
  return all;
}

std::optional<Incumbent> better_synchronous_algorithm(const Problem& problem, const Bounds& bounds,
                                                      const Toolbox& tools, Exploration& found,
                                                      StopRule& rule, const RunContext& context) {
  const double best_us = found.best.found.schedule->finish_us;
  if (!weighs_algorithms(problem) || rule.stop(best_us)) return std::nullopt;
  const std::optional<FrontierTrial> point = best_synchronous(problem, bounds, best_us, context);
  if (!point) return std::nullopt;
  const Checkpoints::Prefix names(context.checkpoints(), "known-steps-");
  const Problem asked = problem_of(problem, *point);
  EngineRunner runner(asked, bounds, tools, context);
  try {
    std::optional<Exploration> known = explore_unless_faulty(asked, runner, rule, context, found);
    if (known && known->best.found.schedule->finish_us < best_us) return std::move(known->best);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;  // an interrupt
  }
  return std::nullopt;
}

}  // namespace rondo
