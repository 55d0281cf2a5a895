#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assemble_rounds.hpp"
#include "list_continuation.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/rounds.hpp"
#include "round_parts.hpp"
#include "stage_solver.hpp"

namespace rondo {
namespace {

constexpr int kLeastEpochs = 4;
constexpr int kMostEpochs = 16;
constexpr double kMostRounds = 256;  ///< about; rounds become longer before there are more

/// What a model took, see RoundOptions::model_work.
double work_of(const RoundPart& part) {
  return static_cast<double>(part.rows) * static_cast<double>(part.iterations + part.columns);
}

/// The report of a part whose moves are the plan's.
RoundPart kept(const Part& part, const std::string& why) {
  RoundPart report;
  report.name = part.name;
  report.outcome = "kept the start: " + why;
  report.objective_before = report.objective_after = kNoValue;
  return report;
}

/// What the rounds have not committed yet of the best complete schedule that is known.
struct Plan {
  std::vector<Move> moves;  ///< by start
  std::vector<Send> sends;
  double finish_us = kNoValue;  ///< of the whole schedule
  bool exists() const { return !std::isnan(finish_us); }
};

class RoundLoop {
 public:
  RoundLoop(const RoundsProblem& problem, const Toolbox& tools, const Communicator& communicator,
            const FinishRound& finish_round, RoundsNotes& notes)
      : problem_(problem),
        topology_(*problem.instance.topology),
        demand_(problem.instance.demand),
        communicator_(communicator),
        finish_round_(finish_round),
        notes_(notes),
        hops_(topology_),
        finder_(hops_, demand_),
        committed_(topology_, hops_, demand_),
        bytes_(demand_.bytes(ChunkId{0})),
        relay_us_(hops_.relay_distance_us(bytes_)),
        solver_(tools, communicator),
        continuation_(topology_, hops_, demand_, problem.engine.seed, communicator) {
    window_.tau_us = epoch_us();
    window_.epochs = problem.rounds.epochs > 0 ? problem.rounds.epochs : default_epochs();
  }

  void resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& plan);
  /// What all rounds together send, those before resume() included.
  std::vector<Send> run();

 private:
  double epoch_us() const;
  int default_epochs() const;
  RoundRecord round();
  void hit(const std::string& limit);
  std::string why_to_keep_plan();
  bool out_of_time();
  SolveLimits limits_left() const;
  std::vector<PlacedMove> solve_stage(const std::vector<Part>& parts, const std::vector<Move>& window_moves,
                                      const std::vector<PlacedMove>& decided, std::vector<RoundPart>& reports,
                                      bool& any_change);
  void consider(const std::vector<PlacedMove>& moves);
  void take(Schedule plan);
  void decide(const std::vector<Send>& sends);
  void check_signal() const;

  const RoundsProblem& problem_;
  const Topology& topology_;
  const Demand& demand_;
  const Communicator& communicator_;
  const FinishRound& finish_round_;
  RoundsNotes& notes_;
  const HopTable hops_;
  const HopFinder finder_;
  CommittedSchedule committed_;
  const double bytes_;
  const std::vector<double> relay_us_;
  StageSolver solver_;
  const ListContinuation continuation_;
  RoundWindow window_;
  Plan plan_;
  Stopwatch clock_;
  double model_work_ = 0;      ///< of the models so far
  bool plan_is_new_ = false;   ///< not the rest of the plan that the last round file implies
  std::vector<Send> decided_;  ///< committed, round after round
};

/// The time that a chunk takes on the fastest link, or on the fastest hop where that is little longer
/// (latency is small), so that what lands can be sent on in the next epoch.
double RoundLoop::epoch_us() const {
  const EpochOptions& asked = problem_.engine.epochs;
  const double tau_us = make_epoch_grid(topology_, demand_, asked).tau_us;
  if (asked.rule != EpochRule::fastest_link) return tau_us;
  double fastest_us = kInfinity;
  for (const Hop& hop : hops_.hops()) fastest_us = std::min(fastest_us, hop.duration_us(bytes_));
  return fastest_us <= 1.5 * tau_us ? std::max(tau_us, fastest_us) : tau_us;
}

int RoundLoop::default_epochs() const {
  int longest = 1;
  for (const Hop& hop : hops_.hops())
    longest = std::max(longest, landing_epochs(hop, bytes_, window_.tau_us));
  const int from_latencies = std::clamp(2 * longest, kLeastEpochs, kMostEpochs);
  return std::max(from_latencies,
                  static_cast<int>(std::ceil(problem_.bound_us / (kMostRounds * window_.tau_us))));
}

void RoundLoop::resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& plan) {
  std::optional<std::vector<Send>> sends;
  if (plan) {
    sends = plan->sends;
    plan_.finish_us = plan->finish_us;
    plan_is_new_ = true;
  }
  for (const RoundRecord& record : finished) {
    why_to_keep_plan();  // notes the limits that the run has hit before
    decide(record.sends);
    if (record.plan) sends = record.plan;
    for (const RoundPart& part : record.parts) model_work_ += work_of(part);
    plan_.finish_us = record.finish_after_us;
    window_.begin_us = record.end_us;
    window_.round = record.round + 1;
    plan_is_new_ = false;
    if (committed_.state(record.end_us).unmet != record.state.unmet) {
      throw Error(ExitCode::bad_data,
                  fmt::format("round {} does not follow from the rounds before it", record.round));
    }
  }
  if (sends) {
    plan_.sends = std::move(*sends);
    plan_.moves = finder_.moves_of(plan_.sends);  // those of finished rounds are removed below
    std::erase_if(plan_.moves, [&](const Move& move) {
      return std::isfinite(committed_.held_from_us(move.chunk, hops_.hop(move.hop).dst));
    });
  }
}

void RoundLoop::check_signal() const {
  const std::atomic<bool>* interrupt = problem_.engine.limits.interrupt;
  if (communicator_.max(interrupt && interrupt->load() ? 1 : 0) > 0) {
    throw Error(
        ExitCode::stopped,
        fmt::format("stopped by a signal after {} whole rounds; rondo resume continues", window_.round));
  }
}

std::vector<Send> RoundLoop::run() {
  while (!committed_.all_met()) {
    check_signal();
    const RoundRecord record = round();
    check_signal();  // a signal may have cut a model short, whose result then would depend on time
    finish_round_(record);
    plan_is_new_ = false;
    window_.begin_us = record.end_us;
    ++window_.round;
  }
  return std::move(decided_);
}

void RoundLoop::decide(const std::vector<Send>& sends) {
  committed_.fix(sends);
  decided_.insert(decided_.end(), sends.begin(), sends.end());
}

void RoundLoop::take(Schedule plan) {
  plan_.finish_us = plan.finish_us;
  plan_.sends = std::move(plan.sends);
  plan_.moves = finder_.moves_of(plan_.sends);
  plan_is_new_ = true;
}

void RoundLoop::hit(const std::string& limit) {
  auto& limits = notes_.limits_hit;
  if (std::find(limits.begin(), limits.end(), limit) == limits.end()) limits.push_back(limit);
}

/// Why the round takes the plan's moves and solves no models, for reasons that a resumed run finds again,
/// unlike the clock; empty where it does solve them.
std::string RoundLoop::why_to_keep_plan() {
  if (!plan_.exists()) return "";
  if (plan_.finish_us <= problem_.stop_at_us) return "the plan ends early enough";
  if (model_work_ < problem_.rounds.model_work) return "";
  hit("work");
  return "the budget of model work is spent";
}

/// Collective: clocks differ between ranks; the time is over once it is on one of them.
bool RoundLoop::out_of_time() {
  if (!plan_.exists() || problem_.engine.limits.time_limit_s < 0) return false;
  if (communicator_.max(-limits_left().time_limit_s) < 0) return false;
  hit("time");
  return true;
}

SolveLimits RoundLoop::limits_left() const {
  SolveLimits limits = problem_.engine.limits;
  if (limits.time_limit_s >= 0) limits.time_limit_s = std::max(0.0, limits.time_limit_s - clock_.seconds());
  return limits;
}

RoundRecord RoundLoop::round() {
  RoundRecord record;
  record.round = window_.round;
  record.chunks = demand_.chunks_per_contribution();
  record.begin_us = window_.begin_us;
  record.end_us = window_.end_us();
  record.bound_us = problem_.bound_us;
  record.finish_before_us = plan_.finish_us;

  std::vector<Move> window_moves;
  for (const Move& move : plan_.moves) {
    if (move.start_us < record.end_us) window_moves.push_back(move);
  }
  std::vector<PlacedMove> decided;
  bool any_change = false;
  std::string why_kept = why_to_keep_plan();
  if (why_kept.empty() && out_of_time()) why_kept = "the time limit is over";
  for (const auto& stage : problem_.decomposition.stages) {
    if (!why_kept.empty()) {
      for (const Part& part : stage) record.parts.push_back(kept(part, why_kept));
      continue;
    }
    const auto more = solve_stage(stage, window_moves, decided, record.parts, any_change);
    decided.insert(decided.end(), more.begin(), more.end());
  }
  std::stable_sort(decided.begin(), decided.end(),
                   [](const PlacedMove& a, const PlacedMove& b) { return a.epoch < b.epoch; });
  if (any_change || !plan_.exists()) consider(decided);

  // What starts in the window is committed now.
  for (const Move& move : plan_.moves) {
    if (move.start_us >= record.end_us) continue;
    append_sends(topology_, hops_.hop(move.hop), move.chunk, bytes_, move.start_us, record.sends);
  }
  if (record.sends.empty() && plan_.moves.empty() && committed_.state(record.begin_us).in_flight.empty()) {
    // Nothing moves and nothing will: no transfer is worth its links to a model of one round.
    notes_.remarks.push_back(
        fmt::format("round {} moved nothing; the list scheduler's plan takes over", record.round));
    take(continuation_.resume(committed_, window_.begin_us, {}));
    return round();
  }
  Schedule fixed{std::move(record.sends)};
  canonicalise(fixed);
  record.sends = std::move(fixed.sends);
  decide(record.sends);
  std::erase_if(plan_.moves, [&](const Move& move) { return move.start_us < record.end_us; });
  record.finish_after_us = plan_.finish_us;
  record.state = committed_.state(record.end_us);
  if (plan_.exists() && plan_is_new_) record.plan = plan_.sends;
  if (!plan_.exists()) plan_.moves.clear();
  return record;
}

std::vector<PlacedMove> RoundLoop::solve_stage(const std::vector<Part>& parts,
                                               const std::vector<Move>& window_moves,
                                               const std::vector<PlacedMove>& decided,
                                               std::vector<RoundPart>& reports, bool& any_change) {
  const PartOptions options{problem_.rounds.gamma, static_cast<std::size_t>(problem_.rounds.max_columns),
                            problem_.engine.seed};
  std::vector<PartTask> tasks;
  for (const Part& part : parts) {
    tasks.push_back(make_part_task(topology_, hops_, demand_, committed_, problem_.decomposition, part,
                                   window_, window_moves, decided, relay_us_, options));
  }
  const std::vector<PartAnswer> answers = solver_.solve(tasks, plan_.exists(), limits_left());

  std::vector<PlacedMove> chosen;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const PartTask& task = tasks[p];
    RoundPart report = kept(parts[p], task.refusal);
    std::vector<RoundStart> starts = task.start;
    if (task.refusal.empty()) {
      const PartResult& result = answers[p].result;
      report.rank = answers[p].rank;
      report.seconds = answers[p].seconds;
      report.outcome = answers[p].solved ? result.outcome : "copied: " + result.outcome;
      report.nodes = answers[p].solved ? result.nodes : 0;
      report.iterations = result.iterations;
      report.columns = result.columns;
      report.rows = result.rows;
      report.objective_before = result.before;
      report.objective_after = result.after;
      report.transfers_changed = changed(task.start, result.starts);
      model_work_ += work_of(report);  // copied ones as well: a resumed run copies fewer
      any_change = any_change || report.transfers_changed > 0;
      starts = result.starts;
    }
    for (const RoundStart& start : starts) chosen.push_back(task.moved(start));
    chosen.insert(chosen.end(), task.kept.begin(), task.kept.end());
    reports.push_back(std::move(report));
  }
  return chosen;
}

/// Takes the round's moves as the new plan, with the list scheduler's continuation, if it ends no later.
void RoundLoop::consider(const std::vector<PlacedMove>& placed) {
  std::vector<Move> moves;
  for (const PlacedMove& move : placed) moves.push_back({move.chunk, move.hop, 0});
  std::vector<Send> sends = committed_.realise(moves, window_.begin_us);
  if (problem_.rounds.start == RoundsStart::none && !plan_.exists()) {
    plan_.moves = finder_.moves_of(sends);
    return;
  }
  Schedule candidate = continuation_.resume(committed_, window_.begin_us, std::move(sends));
  if (plan_.exists() && candidate.finish_us >= plan_.finish_us * (1 - 1e-12)) return;
  take(std::move(candidate));
}

}  // namespace

void check_rounds(const Demand& demand) {
  if (!demand.uniform_chunk_bytes()) {
    throw Error(ExitCode::unavailable,
                "engine rounds needs chunks of one size; use engine list for this demand");
  }
}

Schedule solve_rounds(const RoundsProblem& problem, const Toolbox& tools, const Communicator& communicator,
                      const std::vector<RoundRecord>& finished, const std::optional<Schedule>& plan,
                      const FinishRound& finish_round, RoundsNotes& notes) {
  check_rounds(problem.instance.demand);
  RoundLoop loop(problem, tools, communicator, finish_round, notes);
  loop.resume(finished, plan);
  return assemble_rounds(*problem.instance.topology, problem.instance.demand, loop.run());
}

}  // namespace rondo
