#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>

#include "packing.hpp"
#include "part_solver.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/rounds.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "round_parts.hpp"

namespace rondo {
namespace {

constexpr int kLeastEpochs = 4;
constexpr int kMostEpochs = 16;
constexpr double kMostRounds = 256;  ///< about; rounds become longer before there are more
constexpr double kModelWork =
    4e8;  ///< of all models of a run with a plan, see work_of: about a minute of CPU
constexpr std::size_t kRemembered = 64;    ///< part tasks
constexpr double kContinuationWork = 2e5;  ///< sends of all list schedules that continue a round's moves

/// What a model took, in a measure that is the same on every machine: simplex iterations and preprocessing.
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

double latest_arrival(const std::vector<Send>& sends, double at_least) {
  for (const Send& send : sends) at_least = std::max(at_least, send.arrival_us);
  return at_least;
}

/// The best complete schedule that is known: what is not yet decided for good of it.
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
        tools_(tools),
        communicator_(communicator),
        finish_round_(finish_round),
        notes_(notes),
        hops_(topology_),
        finder_(hops_, demand_),
        course_(topology_, hops_, demand_),
        bytes_(demand_.bytes(ChunkId{0})),
        relay_us_(hops_.relay_distance_us(bytes_)) {
    window_.tau_us = epoch_us();
    window_.epochs = problem.rounds.epochs > 0 ? problem.rounds.epochs : default_epochs();
  }

  void resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& plan);
  std::vector<RoundRecord> run();

 private:
  double epoch_us() const;
  int default_epochs() const;
  RoundRecord round();
  std::string why_to_keep_plan();
  SolveLimits limits_left() const;
  struct PartAnswer {
    PartResult result;
    bool solved = false;  ///< by this part's own model; otherwise copied
    int rank = 0;
    double seconds = 0;
  };
  std::vector<PartAnswer> answer(const std::vector<PartTask>& tasks);
  std::vector<PlacedMove> solve_stage(const std::vector<Part>& parts, const std::vector<Move>& window_moves,
                                      const std::vector<PlacedMove>& decided, std::vector<RoundPart>& reports,
                                      bool& any_change);
  void consider(const std::vector<PlacedMove>& moves);
  Plan continued(std::vector<Send> sends);
  Schedule continue_by_list(const Begun& begun, const std::string& policy, std::uint64_t seed) const;
  void check_signal() const;

  const RoundsProblem& problem_;
  const Topology& topology_;
  const Demand& demand_;
  const Toolbox& tools_;
  const Communicator& communicator_;
  const FinishRound& finish_round_;
  RoundsNotes& notes_;
  const HopTable hops_;
  const HopFinder finder_;
  Course course_;
  const double bytes_;
  const std::vector<double> relay_us_;
  RoundWindow window_;
  Plan plan_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double model_work_ = 0;  ///< of the models so far
  /// Rounds of a pipeline repeat themselves: what the last tasks came to. Counts as work all the same, so
  /// that a resumed run goes the same way.
  std::deque<std::pair<PartTask, PartResult>> remembered_;
  bool plan_is_new_ = false;  ///< not what the last round file left
  std::vector<RoundRecord> records_;
};

/// A chunk on the fastest link. Where latency is small beside it, the epoch is as long as the fastest hop
/// takes, so that what lands can go on in the next epoch.
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
    course_.fix(record.sends);
    if (record.plan) sends = record.plan;
    for (const RoundPart& part : record.parts) model_work_ += work_of(part);
    plan_.finish_us = record.finish_after_us;
    window_.begin_us = record.end_us;
    window_.round = record.round + 1;
    plan_is_new_ = false;
    if (course_.state(record.end_us).unmet != record.state.unmet) {
      throw Error(ExitCode::bad_data,
                  fmt::format("round {} does not follow from the rounds before it", record.round));
    }
    records_.push_back(record);
  }
  if (sends) {
    plan_.sends = std::move(*sends);
    plan_.moves = finder_.moves_of(plan_.sends);  // with those of the rounds since: they have arrived or will
    std::erase_if(plan_.moves, [&](const Move& move) {
      return std::isfinite(course_.held_from_us(move.chunk, hops_.hop(move.hop).dst));
    });
  }
}

void RoundLoop::check_signal() const {
  const std::atomic<bool>* interrupt = problem_.engine.limits.interrupt;
  if (communicator_.max(interrupt && interrupt->load() ? 1 : 0) > 0) {
    throw Error(
        ExitCode::stopped,
        fmt::format("stopped by a signal after {} whole rounds; rondo resume goes on", records_.size()));
  }
}

std::vector<RoundRecord> RoundLoop::run() {
  while (!course_.all_met()) {
    check_signal();
    RoundRecord record = round();
    check_signal();  // a model that a signal has cut short is not what an undisturbed run would have found
    records_.push_back(std::move(record));
    finish_round_(records_.back());
    records_.back().state = {records_.back().end_us};  // these two are large, and the file has them
    records_.back().plan.reset();
    plan_is_new_ = false;
    window_.begin_us = records_.back().end_us;
    ++window_.round;
  }
  return std::move(records_);
}

/// Collective. Why the models are not asked any more; empty where they are.
std::string RoundLoop::why_to_keep_plan() {
  if (!plan_.exists()) return "";
  const auto hit = [&](const std::string& limit) {
    if (std::find(notes_.limits_hit.begin(), notes_.limits_hit.end(), limit) == notes_.limits_hit.end())
      notes_.limits_hit.push_back(limit);
  };
  if (plan_.finish_us <= problem_.engine.stop_at_us) return "the plan ends early enough";
  // Clocks differ between ranks: all of them go by the slowest.
  const bool has_clock = problem_.engine.limits.time_limit_s >= 0;
  if (has_clock && communicator_.max(-limits_left().time_limit_s) >= 0) {
    hit("time");
    return "the time limit is over";
  }
  if (model_work_ < kModelWork) return "";
  hit("work");
  return "the budget of model work is spent";
}

SolveLimits RoundLoop::limits_left() const {
  SolveLimits limits = problem_.engine.limits;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  if (limits.time_limit_s >= 0) limits.time_limit_s = std::max(0.0, limits.time_limit_s - spent.count());
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
  const std::string why_kept = why_to_keep_plan();
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

  // What starts in the window is decided for good now.
  for (const Move& move : plan_.moves) {
    if (move.start_us >= record.end_us) continue;
    for (const HopLink& part : hops_.hop(move.hop).links) {
      const double start = move.start_us + part.offset_us + bytes_ * part.offset_us_per_byte;
      const double end = start + bytes_ * part.us_per_byte;
      record.sends.push_back({move.chunk, part.link, start, end, end + topology_.link(part.link).latency_us});
    }
  }
  if (record.sends.empty() && plan_.moves.empty() && course_.state(record.begin_us).in_flight.empty()) {
    // Nothing moves and nothing will: the models see no way that is worth it within a round.
    notes_.remarks.push_back(
        fmt::format("round {} moved nothing; the list scheduler's plan takes over", record.round));
    plan_ = continued({});
    plan_is_new_ = true;
    return round();
  }
  Schedule fixed{std::move(record.sends)};
  canonicalise(fixed);
  record.sends = std::move(fixed.sends);
  course_.fix(record.sends);
  std::erase_if(plan_.moves, [&](const Move& move) { return move.start_us < record.end_us; });
  record.finish_after_us = plan_.finish_us;
  record.state = course_.state(record.end_us);
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
    tasks.push_back(make_part_task(topology_, hops_, demand_, course_, problem_.decomposition, part, window_,
                                   window_moves, decided, relay_us_, options));
  }
  const std::vector<PartAnswer> answers = answer(tasks);

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
      model_work_ += work_of(report);
      any_change = any_change || report.transfers_changed > 0;
      starts = result.starts;
    }
    for (const RoundStart& start : starts) chosen.push_back(task.moved(start));
    chosen.insert(chosen.end(), task.kept.begin(), task.kept.end());
    reports.push_back(std::move(report));
  }
  return chosen;
}

/// Collective. Parts that are images of each other, and of parts of the last rounds, have equal problems,
/// their numbers being local: each is solved once.
std::vector<RoundLoop::PartAnswer> RoundLoop::answer(const std::vector<PartTask>& tasks) {
  const auto same = [](const PartTask& a, const PartTask& b) {
    return a.problem == b.problem && a.start == b.start;
  };
  std::vector<PartAnswer> answers(tasks.size());
  std::vector<std::size_t> to_solve;
  std::vector<double> work;
  for (std::size_t p = 0; p < tasks.size(); ++p) {
    if (!tasks[p].refusal.empty()) continue;
    const auto known = std::any_of(remembered_.begin(), remembered_.end(),
                                   [&](const auto& old) { return same(old.first, tasks[p]); });
    const auto twin = std::any_of(to_solve.begin(), to_solve.end(),
                                  [&](std::size_t q) { return same(tasks[q], tasks[p]); });
    answers[p].solved = !known && !twin;
    if (!answers[p].solved) continue;
    to_solve.push_back(p);
    work.push_back(static_cast<double>(tasks[p].problem.chunks.size() * tasks[p].problem.ways.size()));
  }
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t i) {
    return pack(solve_part(tasks[to_solve[i]], plan_.exists(), tools_, limits_left()));
  });
  for (std::size_t i = 0; i < to_solve.size(); ++i) {
    const PartOutcome& outcome = outcomes[i];
    if (outcome.error)
      throw Error(outcome.error->code(), fmt::format("round {}: {}", window_.round, outcome.error->what()));
    answers[to_solve[i]].rank = outcome.rank;
    answers[to_solve[i]].seconds = outcome.seconds;
    remembered_.emplace_back(tasks[to_solve[i]], unpack(outcome.value));
  }
  for (std::size_t p = 0; p < tasks.size(); ++p) {
    if (!tasks[p].refusal.empty()) continue;
    answers[p].result = std::find_if(remembered_.begin(), remembered_.end(), [&](const auto& old) {
                          return same(old.first, tasks[p]);
                        })->second;
  }
  while (remembered_.size() > kRemembered) remembered_.pop_front();
  return answers;
}

/// Takes the round's moves as the new plan, with the list scheduler's continuation, if it ends no later.
void RoundLoop::consider(const std::vector<PlacedMove>& placed) {
  std::vector<Move> moves;
  for (const PlacedMove& move : placed) moves.push_back({move.chunk, move.hop, 0});
  std::vector<Send> sends = course_.realise(moves, window_.begin_us);
  if (!problem_.rounds.mip_start && !plan_.exists()) {
    plan_.moves = finder_.moves_of(sends);
    return;
  }
  Plan candidate = continued(std::move(sends));
  if (plan_.exists() && candidate.finish_us >= plan_.finish_us * (1 - 1e-12)) return;
  plan_ = std::move(candidate);
  plan_is_new_ = true;
}

Schedule RoundLoop::continue_by_list(const Begun& begun, const std::string& policy,
                                     std::uint64_t seed) const {
  return list_schedule(topology_, hops_, demand_,
                       plan_deliveries(topology_, hops_, demand_, problem_.engine.seed),
                       list_rules(policy, problem_.engine.seed + seed), &begun);
}

Plan RoundLoop::continued(std::vector<Send> sends) {
  const Begun begun = course_.begun(window_.begin_us, sends);
  double landed_us = latest_arrival(sends, 0);
  for (const Holding& holding : begun.holdings) landed_us = std::max(landed_us, holding.from_us);
  const std::vector<std::string>& policies = list_policies();
  const auto tries =
      static_cast<std::size_t>(std::clamp(kContinuationWork / demand_.num_deliveries(), 2.0, 60.0));
  const auto outcomes = map_parts(communicator_, std::vector<double>(tries, 1.0), [&](std::size_t i) {
    Packer packer;
    const Schedule rest = continue_by_list(begun, policies[i % policies.size()], i / policies.size());
    packer.put(rest.finish_us);
    packer.put(rest.sends.size());
    for (const Send& send : rest.sends) packer.put(send);
    return packer.take();
  });
  Plan best;
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    Unpacker unpacker(outcome.value);
    const double finish_us = std::max(unpacker.get<double>(), landed_us);
    if (best.exists() && finish_us >= best.finish_us) continue;
    best.finish_us = finish_us;
    best.sends = sends;
    for (auto n = unpacker.get<std::size_t>(); n > 0; --n) best.sends.push_back(unpacker.get<Send>());
  }
  best.moves = finder_.moves_of(best.sends);
  return best;
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
  return reassemble(*problem.instance.topology, problem.instance.demand, loop.run());
}

Schedule reassemble(const Topology& topology, const Demand& demand, const std::vector<RoundRecord>& rounds) {
  Schedule schedule;
  for (const RoundRecord& round : rounds)
    schedule.sends.insert(schedule.sends.end(), round.sends.begin(), round.sends.end());
  const HopTable hops(topology);
  schedule.sends = without_useless(topology, demand, hops, std::move(schedule.sends));
  canonicalise(schedule);
  Course course(topology, hops, demand);
  course.fix(schedule.sends);
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c{i};
    for (const GpuId d : demand.destinations(c)) {
      const double from_us = course.held_from_us(c, d);
      if (!std::isfinite(from_us)) {
        throw Error(ExitCode::bad_data,
                    fmt::format("the rounds bring chunk {} to GPU {} nowhere; resume the run to finish it", i,
                                d.value));
      }
      schedule.finish_us = std::max(schedule.finish_us, from_us);
    }
  }
  return schedule;
}

}  // namespace rondo
