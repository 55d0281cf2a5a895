#include "time_left.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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
constexpr double kIsLeast = 1 + 1e-9;  ///< finish times nearer to the least one are the least one
/// Rounds in a row in vain that end a turn, and turns after which local search alone follows.
constexpr int kIdleRounds = 16;
constexpr int kIdleTurns = 4;
/// A schedule that local search began with is repaired too if it does not end much later than the best.
constexpr double kWorthOfListed = 1.005;
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
                         .stop_at_us = std::max(rule.enough_us(), rule.least_us(best.chunks) * kIsLeast),
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

/// Who has a turn.
enum class Turn : std::uint8_t { rounds, rounds_of_listed, search };
constexpr std::size_t kTurns = 3;

class InTurn {
 public:
  InTurn(const Problem& problem, const Toolbox& tools, const std::optional<Incumbent>& listed,
         Incumbent& best, StopRule& rule, const RunContext& context)
      : problem_(problem), tools_(tools), listed_(listed), best_(best), rule_(rule), context_(context) {
    if (listed_ && !is_worth_rounds(*listed_)) listed_.reset();
    if (!listed_) gains_[index(Turn::rounds_of_listed)] = kNoTurn;
  }

  void run();

 private:
  static constexpr double kNoTurn = -1;
  static std::size_t index(Turn turn) { return static_cast<std::size_t>(turn); }
  static double finish_of(const Incumbent& incumbent) { return incumbent.found.schedule->finish_us; }
  double left_s() const { return (1 - rule_.time_share()) * *problem_.options.time_limit_s; }

  /// Local search leaves schedules in which windows find less than in what it began with.
  bool is_worth_rounds(const Incumbent& listed) const {
    const double finish_us = finish_of(listed);
    return finish_us > finish_of(best_) && finish_us < kWorthOfListed * finish_of(best_) &&
           takes_rounds(problem_, listed);
  }
  Turn next(Turn last) const;
  double repaired(Incumbent& incumbent);
  double searched(double share);
  double take(Turn turn, bool is_last);

  const Problem& problem_;
  const Toolbox& tools_;
  std::optional<Incumbent> listed_;
  Incumbent& best_;
  StopRule& rule_;
  const RunContext& context_;
  std::array<double, kTurns> gains_{kInfinity, kInfinity,
                                    kInfinity};  ///< us a second, of the last turn of each
  std::uint64_t turns_ = 0;
  int idle_turns_ = 0;
  int rounds_ = 0;
};

/// The one that gained most; of equal ones, the first after the last.
Turn InTurn::next(Turn last) const {
  std::size_t best = (index(last) + 1) % kTurns;
  for (std::size_t k = 2; k <= kTurns; ++k) {
    const std::size_t other = (index(last) + k) % kTurns;
    if (gains_[other] > gains_[best]) best = other;
  }
  return static_cast<Turn>(best);
}

/// Returns what was gained.
double InTurn::repaired(Incumbent& incumbent) {
  const double before_us = finish_of(incumbent);
  const double seconds = std::max(kShareOfTurn * left_s(), seconds_of_placing(incumbent, context_));
  rounds_ +=
      repair(problem_, tools_, incumbent, rule_, context_, seconds, problem_.options.seed + (turns_ << 32U));
  return before_us - finish_of(incumbent);
}

double InTurn::searched(double share) {
  const double before_us = finish_of(best_);
  const double now = rule_.time_share();
  improve_further(problem_, best_, rule_, context_, now + share * (1 - now), turns_);
  return before_us - finish_of(best_);
}

double InTurn::take(Turn turn, bool is_last) {
  if (turn == Turn::rounds) return repaired(best_);
  if (turn == Turn::search) return searched(is_last ? 1 : kShareOfTurn);
  const double gain_us = repaired(*listed_);
  if (finish_of(*listed_) >= finish_of(best_)) return gain_us;
  listed_->found.metrics = best_.found.metrics;
  best_ = *std::move(listed_);
  listed_.reset();
  gains_[index(Turn::rounds)] = kInfinity;
  return gain_us;
}

void InTurn::run() {
  const double before_us = finish_of(best_);
  Turn turn = Turn::rounds;
  for (;; ++turns_) {
    const double gap_us = finish_of(best_) - rule_.bound().us;
    const double now_s = left_s();
    if (rule_.stop(finish_of(best_)) || idle_turns_ > kIdleTurns) break;
    // Too late for a round, or turns are in vain: nothing but local search follows.
    const bool is_late = seconds_of_placing(best_, context_) > kShareOfPlacing * now_s;
    const bool is_last = is_late || idle_turns_ == kIdleTurns;
    if (is_last) turn = Turn::search;
    const double gain_us = take(turn, is_last);
    context_.tell(fmt::format("{}: {:.6g} us, gap {:.3f}%", turn == Turn::search ? "local search" : "rounds",
                              finish_of(best_), 100 * (finish_of(best_) / rule_.bound().us - 1)));
    if (is_late) {
      if (!rule_.stop(finish_of(best_))) rule_.hit("time");
      break;
    }
    const bool is_idle = gain_us < kShareOfGap * gap_us;
    idle_turns_ = is_idle ? idle_turns_ + 1 : 0;
    gains_[index(turn)] = is_idle ? 0 : gain_us / (now_s - left_s());
    if (!listed_) gains_[index(Turn::rounds_of_listed)] = kNoTurn;
    turn = next(turn);
  }
  auto& metrics = best_.found.metrics;
  metrics["rounds"] = rounds_;
  if (finish_of(best_) < before_us) metrics["finish_before_rounds_us"] = before_us;
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

void improve_in_turn(const Problem& problem, const Toolbox& tools, const std::optional<Incumbent>& listed,
                     Incumbent& best, StopRule& rule, const RunContext& context) {
  if (!takes_rounds(problem, best)) return;
  InTurn(problem, tools, listed, best, rule, context).run();
}

}  // namespace rondo
