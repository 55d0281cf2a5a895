#include "time_left.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "improve.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/windows/window_rounds.hpp"
#include "step_rules.hpp"

namespace rondo {
namespace {

/// Of the time that is left after the portfolio, what local search has before the rounds; and of what is left
/// then, what a turn of either may take.
constexpr double kShareBeforeRounds = 0.5;
constexpr double kShareOfTurn = 0.25;
/// Of all ways to place what a round has found, on all ranks together for each send; and what they may take
/// of the time left.
constexpr double kSecondsOfPlacing = 1e-5;
constexpr double kShareOfPlacing = 0.5;
constexpr double kAtLeast = 1 + 1e-9;  ///< finish times nearer to the least one are the least one
/// Rounds in a row in vain that end a turn, and turns after which local search alone follows.
constexpr int kIdleRounds = 16;
constexpr int kIdleTurns = 4;
/// A turn is in vain if it does not close this much of the gap.
constexpr double kShareOfGap = 0.002;

bool takes_rounds(const Problem& problem, const Incumbent& best) {
  const SolveOptions& options = problem.options;
  if (!options.time_limit_s || options.engine != "auto" || options.rounds.model_work <= 0) return false;
  const Demand demand = problem.demand.with_chunks(best.chunks);
  if (!may_improve(problem) || problem.sketch || demand.num_deliveries() > kMostPlannedTransfers)
    return false;
  if (has_limited_relays(*problem.topology, problem.demand) || problem.topology->has_bandwidth_steps())
    return false;
  return std::ranges::none_of(best.found.schedule->sends, &Send::has_rate);
}

double seconds_of_placing(const Incumbent& best, const RunContext& context) {
  const auto sends = static_cast<double>(best.found.schedule->sends.size());
  return kSecondsOfPlacing * sends / context.communicator.size();
}

/// Rounds from the incumbent, which they replace if they end earlier. Returns how many there were.
int repair(const Problem& problem, const Toolbox& tools, Incumbent& best, StopRule& rule,
           const RunContext& context, double seconds, std::uint64_t seed) {
  const SolveOptions& options = problem.options;
  const Schedule& start = *best.found.schedule;
  const Demand demand = problem.demand.with_chunks(best.chunks);
  WindowsProblem windows{.topology = *problem.topology,
                         .demand = demand,
                         .seed = seed,
                         .concurrency = options.concurrency,
                         .windows = static_cast<std::size_t>(options.streams),
                         .bound_us = rule.bound().us,
                         .stop_at_us = std::max(rule.enough_us(), rule.least_us(best.chunks) * kAtLeast),
                         .idle_rounds = kIdleRounds};
  windows.limits.max_nodes = options.max_nodes;
  windows.limits.interrupt = context.interrupt;
  windows.limits.time_limit_s = seconds;
  int rounds = 0;
  RoundsNotes notes;
  try {
    Schedule repaired = repair_in_windows(
        windows, *tools.milp, context.communicator, {}, start,
        [&](const RoundRecord& record) {
          if (record.sends.empty()) ++rounds;
        },
        notes);
    if (repaired.finish_us < start.finish_us) {
      best.found.schedule = std::move(repaired);
      best.is_replayed = false;
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::stopped) throw;  // what there was before the rounds stays
  }
  return rounds;
}

}  // namespace

double share_before_rounds(const Problem& problem, const Incumbent& best, const StopRule& rule,
                           const RunContext& context) {
  const double now = rule.time_share();
  const double share = now + kShareBeforeRounds * (1 - now);
  if (now >= 1 || !takes_rounds(problem, best)) return 1;
  const double seconds = (1 - share) * *problem.options.time_limit_s;
  return seconds_of_placing(best, context) <= kShareOfPlacing * seconds ? share : 1;
}

void improve_in_turn(const Problem& problem, const Toolbox& tools, Incumbent& best, StopRule& rule,
                     const RunContext& context) {
  if (!takes_rounds(problem, best)) return;
  const double limit_s = *problem.options.time_limit_s;
  const double before_us = best.found.schedule->finish_us;
  int rounds = 0;
  int idle_turns = 0;
  bool is_of_rounds = true;
  double gain_of_rounds = kInfinity;  // us a second, of the last turn
  double gain_of_search = kInfinity;
  for (std::uint64_t turn = 0;; ++turn) {
    const double start_us = best.found.schedule->finish_us;
    const double now = rule.time_share();
    const double left_s = (1 - now) * limit_s;
    const double placing_s = seconds_of_placing(best, context);
    if (rule.stop(start_us) || idle_turns > kIdleTurns) break;
    const bool is_last = placing_s > kShareOfPlacing * left_s;  // too late for a round
    is_of_rounds = is_of_rounds && !is_last;
    if (is_of_rounds) {
      const double seconds = std::max(kShareOfTurn * left_s, placing_s);
      rounds += repair(problem, tools, best, rule, context, seconds, problem.options.seed + (turn << 32U));
    } else {
      // Where turns are in vain, nothing but local search follows.
      const double share = is_last || idle_turns == kIdleTurns ? 1 : kShareOfTurn;
      improve_further(problem, best, rule, context, now + share * (1 - now), turn);
    }
    const double finish_us = best.found.schedule->finish_us;
    const double gap_us = start_us - rule.bound().us;
    context.tell(fmt::format("{}: {:.6g} us, gap {:.3f}%", is_of_rounds ? "rounds" : "local search",
                             finish_us, 100 * (finish_us / rule.bound().us - 1)));
    if (is_last) {
      if (!rule.stop(finish_us)) rule.hit("time");
      break;
    }
    const bool is_idle = start_us - finish_us < kShareOfGap * gap_us;
    idle_turns = is_idle ? idle_turns + 1 : 0;
    (is_of_rounds ? gain_of_rounds : gain_of_search) =
        is_idle ? 0 : (start_us - finish_us) / ((rule.time_share() - now) * limit_s);
    const bool is_next = gain_of_rounds == gain_of_search ? !is_of_rounds : gain_of_rounds > gain_of_search;
    is_of_rounds = is_next && idle_turns < kIdleTurns;
  }
  auto& metrics = best.found.metrics;
  metrics["rounds"] = rounds;
  if (best.found.schedule->finish_us < before_us) metrics["finish_before_rounds_us"] = before_us;
}

}  // namespace rondo
