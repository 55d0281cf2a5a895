#include "round_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chunk_counts.hpp"
#include "improve.hpp"
#include "join.hpp"
#include "rondo/core/error.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/parallel/metered_communicator.hpp"
#include "rondo/windows/window_rounds.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

constexpr int kChunksWithoutPlan = 4;
constexpr double kShareOfSearch = 0.5;   ///< of the time limit, where rounds repair what the search finds
constexpr double kShareOfRounds = 0.75;  ///< of the time that is left; the rest is for the files
constexpr double kShareOfWindows = 0.9;
constexpr double kWorthOfFewerChunks = 0.01;  ///< of the finish time

Decomposition decompose(const Problem& problem, const Demand& demand) {
  const SolveOptions& options = problem.options;
  const DecompositionInfo& decomposition = find_decomposition(options.decompose);
  if (!decomposition.decompose_round) {
    throw Error(ExitCode::usage,
                fmt::format("--decompose {} does not take rounds apart; leave it out", decomposition.name));
  }
  return decomposition.decompose_round(*problem.topology, demand, options.parts, options.seed);
}

/// A round's model grows with the number of chunks. The least number that loses little, if it is less than
/// the best schedule's.
std::optional<int> fewer_chunks(const Exploration& listed) {
  const double finish_us = listed.best.found.schedule->finish_us;
  for (const auto& [chunks, trade] : best_by_chunks(listed.state.trials)) {
    if (trade.finish_us > finish_us * (1 + kWorthOfFewerChunks)) continue;
    return chunks < listed.best.chunks ? std::optional(chunks) : std::nullopt;
  }
  return std::nullopt;
}

std::string describe(const RoundRecord& record, const Demand& demand) {
  const double total = demand.with_chunks(static_cast<int>(record.chunks)).num_deliveries();
  const double unmet = static_cast<double>(record.state.unmet.size());
  std::int64_t changed = 0;
  for (const RoundPart& part : record.parts) changed += part.transfers_changed;
  return fmt::format("round {}: {:.1f}% of the demand sent, {} parts, {} transfers changed by the models{}",
                     record.round, 100 * (1 - unmet / total), record.parts.size(), changed,
                     std::isnan(record.finish_after_us)
                         ? ""
                         : fmt::format(", incumbent {:.6g} us, gap {:.3f}%", record.finish_after_us,
                                       100 * (record.finish_after_us / record.bound_us - 1)));
}

/// The best schedule of a search without rounds.
Exploration explore_for_windows(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                                const RunContext& context) {
  Problem searched = problem;
  searched.options.engine = "auto";
  if (searched.options.time_limit_s) *searched.options.time_limit_s *= kShareOfSearch;
  const Checkpoints::Prefix names(*context.store.checkpoints, "plan-");
  EngineRunner runner(searched, bounds, tools, context);
  StopRule rule(searched, bounds, context);
  Exploration found = explore(searched, runner, rule, context);
  improve(searched, runner, found, rule, context, share_of_work(searched));
  std::vector<Incumbent> others = starts_of_joining(searched, runner, found.state);
  join(searched, found.best, std::move(others), rule, context);
  return found;
}

RoundRecord summary_of(RoundRecord record) {
  record.sends.clear();
  record.plan.reset();
  record.state = {record.state.time_us};
  return record;
}

}  // namespace

void check_rounds(const Problem& problem) {
  if (problem.options.rounds.start == RoundsStart::best) return;
  check_rounds(problem.demand);
  decompose(problem, problem.demand);
}

Exploration explore_for_rounds(const Problem& problem, const Bounds& bounds, const Toolbox& tools,
                               const RunContext& context) {
  const RunStore& store = context.store;
  if (!store.finished.empty()) return {{}, {.chunks = static_cast<int>(store.finished.back().chunks)}};
  const int asked = problem.options.chunks;
  if (problem.options.rounds.start == RoundsStart::none)
    return {{}, {.chunks = asked > 0 ? asked : kChunksWithoutPlan}};

  if (problem.options.rounds.start == RoundsStart::best)
    return explore_for_windows(problem, bounds, tools, context);
  Problem listed = problem;
  listed.options.engine = "list";
  listed.options.improve_work = 0;  // that is what the models are for
  listed.options.concurrency = 1;   // rates are not divided, which the models do not know
  listed.options.join = false;      // nor do they know what goes together
  if (listed.options.time_limit_s) *listed.options.time_limit_s *= kShareOfPortfolio;
  const auto search = [&](const char* prefix) {
    EngineRunner runner(listed, bounds, tools, context);
    StopRule rule(listed, bounds, context);
    const Checkpoints::Prefix names(*store.checkpoints, prefix);
    return explore(listed, runner, rule, context);
  };
  Exploration found = search("plan-");
  if (const std::optional<int> chunks = fewer_chunks(found)) {
    listed.options.chunks = *chunks;
    found = search("plan-of-fewer-chunks-");
  }
  return found;
}

void improve_by_rounds(const Problem& problem, const Toolbox& tools, Exploration& exploration, StopRule& rule,
                       const RunContext& context) {
  const SolveOptions& options = problem.options;
  const RunStore& store = context.store;
  Incumbent& best = exploration.best;
  const std::optional<Schedule> plan = std::move(best.found.schedule);
  best.found = {};

  const bool in_windows = options.rounds.start == RoundsStart::best;
  RoundsProblem rounds{
      {problem.topology, problem.demand.with_chunks(best.chunks)}, options.rounds, {}, {}, rule.bound().us};
  const Demand& demand = rounds.instance.demand;
  rounds.engine.seed = options.seed;
  rounds.engine.epochs = options.epochs;
  rounds.engine.limits.max_nodes = options.max_nodes;
  rounds.engine.limits.interrupt = context.interrupt;
  rounds.engine.limits.time_limit_s =
      limits_of_step(options, context, in_windows ? kShareOfWindows : kShareOfRounds).time_limit_s;
  rounds.stop_at_us = rule.enough_us();
  if (!in_windows) rounds.decomposition = decompose(problem, demand);

  double files_s = 0;
  for (const RoundRecord& record : store.finished) exploration.rounds.push_back(summary_of(record));
  const FinishRound finish_round = [&](const RoundRecord& record) {
    const Stopwatch clock;
    store.finish_round(record);
    files_s += clock.seconds();
    context.tell(describe(record, problem.demand));
    exploration.rounds.push_back(summary_of(record));
  };
  RoundsNotes notes;
  const MeteredCommunicator metered(context.communicator);
  if (in_windows) {
    const WindowsProblem windows{.topology = *problem.topology,
                                 .demand = demand,
                                 .seed = options.seed,
                                 .concurrency = options.concurrency,
                                 .bound_us = rounds.bound_us,
                                 .stop_at_us = rounds.stop_at_us,
                                 .least_us = [&](int chunks) { return rule.least_us(chunks); },
                                 .most_chunks = most_chunks_of_improvement(problem.demand, options),
                                 .model_work = options.rounds.model_work,
                                 .limits = rounds.engine.limits};
    RepairedSchedule repaired =
        repair_in_windows(windows, *tools.milp, metered, store.finished, plan, finish_round, notes);
    best.found.schedule = std::move(repaired.schedule);
    best.chunks = repaired.chunks;
  } else {
    best.found.schedule = solve_rounds(rounds, tools, metered, store.finished, plan, finish_round, notes);
  }
  best.found.remarks = std::move(notes.remarks);
  best.found.limits_hit = std::move(notes.limits_hit);
  best.engine = in_windows ? "rounds/windows" : "rounds/" + options.decompose;
  best.seed = options.seed;
  best.is_replayed = false;
  auto& metrics = best.found.metrics;
  metrics["rounds"] = static_cast<double>(exploration.rounds.size());
  metrics["rounds_resumed"] = static_cast<double>(store.finished.size());
  metrics["exchange_s"] = context.communicator.max(metered.exchange().seconds);
  metrics["exchange_bytes"] = metered.exchange().bytes;
  if (plan) metrics["start_finish_us"] = plan->finish_us;
  exploration.round_files_s = files_s;
}

}  // namespace rondo
