#include "rondo/windows/window_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/local_search/streams.hpp"
#include "rondo/parallel/best_of_parts.hpp"
#include "window_choice.hpp"
#include "window_placing.hpp"
#include "window_records.hpp"
#include "window_solver.hpp"

namespace rondo {
namespace {

constexpr std::size_t kAlone = 4;  ///< windows whose answers are placed alone where not all fit together
constexpr std::size_t kShareOfBest =
    4;  ///< of many answers, one in so many is also placed without the others
/// Rounds in a row without an earlier finish, after which the rounds end once they have taken this share of
/// the work of all models.
constexpr int kIdleRounds = 16;
constexpr double kIdleShare = 0.25;
/// Rounds in vain after which chunks are split, and between rounds that replant.
constexpr int kIdleBeforeSplit = 1;
constexpr int kIdleBetweenReplanting = 4;
constexpr double kMostSplit = 2e5;  ///< transfers of a plan in halves
/// Streams of replanting and the length of their chains, shorter where they were more work than that; and
/// what a transfer of a chain counts beside the work of models.
constexpr std::size_t kReplantingStreams = 4;
constexpr double kReplanting = 16;
constexpr double kWorkOfReplanting = 8e7;
constexpr double kWorkOfPlacing = 20;
/// Finish times that differ by less, as a share, are the same.
constexpr double kSameFinish = 1e-9;
constexpr double kAtLeast = 1 + kSameFinish;  ///< finish times nearer to the least one are the least one

struct Quality {
  double finish_us = kInfinity;
  double critical = kInfinity;  ///< transfers without slack, those with a little of it counted in part
  friend auto operator<=>(const Quality&, const Quality&) = default;
};

/// Sent between ranks.
struct Placed {
  std::vector<PlannedTransfer> transfers = {};
  PlanQuality quality = {};
};
auto members_of(SameAs<Placed> auto& p) {
  return std::tie(p.transfers, p.quality);
}

bool touch(const Window& a, const Window& b) {
  return a.from_us < b.until_us && b.from_us < a.until_us;
}

class WindowRounds {
 public:
  WindowRounds(const WindowsProblem& problem, const Solver& milp, const Communicator& communicator,
               RoundsNotes& notes)
      : problem_(problem),
        milp_(milp),
        communicator_(communicator),
        notes_(notes),
        fabric_(make_plan_space(problem.topology, problem.demand, problem.concurrency)) {}

  RepairedSchedule run(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start,
                       const FinishRound& finish_round);

 private:
  bool resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start);
  void take(Schedule schedule);
  bool goes_on();
  RoundRecord round();
  bool may_split() const;
  void split();
  std::optional<RoundPart> replant();
  RoundRecord empty_record() const;
  std::vector<char> improve(const PlanView& view, const std::vector<Window>& windows,
                            const std::vector<WindowAnswer>& answers);
  bool try_attempts(const PlanView& view, const std::vector<Window>& windows,
                    const std::vector<WindowAnswer>& answers, const std::vector<Attempt>& attempts,
                    std::vector<char>& taken);
  double critical(const SurveyedPlan& plan) const;
  void count_idle(const RoundRecord& record);
  void check_signal() const;
  void hit(const std::string& limit);
  double seconds_left() const { return problem_.limits.time_limit_s - clock_.seconds(); }
  double finish_us() const { return incumbent_.plan.quality.finish_us; }
  const Demand& demand() const { return fabric_.demand; }  ///< in the schedule's chunks
  int chunks() const { return demand().chunks_per_contribution(); }
  /// Of the schedule, in its chunks.
  bool is_least() const { return finish_us() <= problem_.least_us(chunks()) * kAtLeast; }
  SolveLimits limits_left() const {
    SolveLimits limits = problem_.limits;
    if (limits.time_limit_s >= 0) limits.time_limit_s = std::max(0.0, seconds_left());
    return limits;
  }

  const WindowsProblem& problem_;
  const Solver& milp_;
  const Communicator& communicator_;
  RoundsNotes& notes_;
  PlanSpace fabric_;           ///< of the demand in the schedule's chunks
  PlanSpace space_ = fabric_;  ///< with the hops of the schedule besides
  Schedule schedule_;          ///< the best one known
  bool is_new_ = true;         ///< no record has it yet
  bool has_plan_ = false;      ///< of the schedule
  SurveyedPlan incumbent_ = {};
  double most_us_ = 0;  ///< of this round's windows
  std::int64_t next_round_ = 0;
  int idle_rounds_ = 0;
  std::int64_t chunks_of_last_ = 0;  ///< that was counted
  double model_work_ = 0;
  double idle_from_ = 0;  ///< model work when the rounds that now are idle began
  double longest_round_s_ = 0;
  Stopwatch clock_;
};

/// The schedule as the plan that windows are chosen in; the same from a record as in the run that wrote it.
void WindowRounds::take(Schedule schedule) {
  schedule_ = std::move(schedule);
  is_new_ = true;
  space_ = fabric_;
  std::optional<PlannedOrder> order = order_of(schedule_, space_);
  has_plan_ = order.has_value();
  if (!has_plan_) return;
  TransferPlan& plan = order->plan;
  if (order->waits) {
    // In the same order without waiting, where that costs nothing.
    plan = justified(placed_forward(plan, space_, starts_of(plan)), space_);
    has_plan_ = plan.quality.finish_us <= schedule_.finish_us * (1 + kSameFinish);
    if (!has_plan_) return;
  } else {
    plan.quality = quality_of(plan.transfers, space_);
  }
  incumbent_ = survey(std::move(plan), space_);
}

/// Returns whether the rounds have committed their schedule.
bool WindowRounds::resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start) {
  const std::vector<Send>* newest = nullptr;
  for (const RoundRecord& record : finished) {
    if (record.plan) newest = &*record.plan;
    if (!record.sends.empty()) newest = &record.sends;
    for (const RoundPart& part : record.parts) model_work_ += work_of(part);
    count_idle(record);
    next_round_ = record.round + 1;
  }
  if (newest == nullptr && !start)
    throw Error(ExitCode::bad_data, "no round file has a plan; solve the problem again without them");
  take(newest != nullptr ? Schedule{*newest, finished.back().finish_after_us} : *start);
  is_new_ = newest == nullptr;
  return newest != nullptr && !finished.back().sends.empty();
}

void WindowRounds::count_idle(const RoundRecord& record) {
  if (std::exchange(chunks_of_last_, record.chunks) != record.chunks) idle_rounds_ = 0;
  ++idle_rounds_;
  if (record.finish_after_us >= record.finish_before_us) return;
  idle_rounds_ = 0;
  idle_from_ = model_work_;
}

void WindowRounds::check_signal() const {
  const std::atomic<bool>* interrupt = problem_.limits.interrupt;
  if (communicator_.max(interrupt && interrupt->load() ? 1 : 0) > 0) {
    throw Error(
        ExitCode::stopped,
        fmt::format("stopped by a signal after {} whole rounds; rondo resume continues", next_round_));
  }
}

void WindowRounds::hit(const std::string& limit) {
  auto& limits = notes_.limits_hit;
  if (std::ranges::find(limits, limit) == limits.end()) limits.push_back(limit);
}

/// Collective.
bool WindowRounds::goes_on() {
  if (!has_plan_ || static_cast<double>(incumbent_.plan.transfers.size()) > kMostPlannedTransfers) {
    notes_.remarks.emplace_back(
        "windows repair schedules of whole transfers over paths, up to 700000 of them; this one stays as it "
        "is");
    return false;
  }
  const bool have_worked =
      problem_.limits.time_limit_s < 0 && model_work_ - idle_from_ >= kIdleShare * problem_.model_work;
  const bool is_idle = idle_rounds_ >= (have_worked ? kIdleRounds : problem_.idle_rounds);
  if (finish_us() <= problem_.stop_at_us || is_idle) return false;
  if (is_least() && (idle_rounds_ > 0 || !may_split())) return false;
  if (problem_.limits.time_limit_s < 0) {
    if (model_work_ < problem_.model_work) return true;
    hit("work");
    return false;
  }
  // Clocks differ between ranks; the time is over once it is on one of them.
  if (communicator_.max(longest_round_s_ - seconds_left()) < 0) return true;
  hit("time");
  return false;
}

RoundRecord WindowRounds::empty_record() const {
  RoundRecord record;
  record.round = next_round_;
  record.chunks = chunks();
  record.bound_us = problem_.bound_us;
  record.finish_before_us = record.finish_after_us = schedule_.finish_us;
  return record;
}

RepairedSchedule WindowRounds::run(const std::vector<RoundRecord>& finished,
                                   const std::optional<Schedule>& start, const FinishRound& finish_round) {
  if (resume(finished, start)) return {std::move(schedule_), chunks()};
  if (!finished.empty() || !has_plan_) {
    // A record's schedule is tight already.
  } else if (TransferPlan tight = justified(incumbent_.plan, space_);
             tight.quality.finish_us < schedule_.finish_us * (1 - kSameFinish)) {
    take(schedule_of(tight, space_));
  }
  for (;;) {
    check_signal();
    if (!goes_on()) break;
    const Stopwatch clock;
    RoundRecord record = round();
    check_signal();  // a signal may have cut a model short, whose result then would depend on time
    longest_round_s_ = std::max(longest_round_s_, clock.seconds());
    count_idle(record);
    finish_round(record);
    ++next_round_;
  }
  RoundRecord last = empty_record();
  last.end_us = schedule_.finish_us;
  last.sends = schedule_.sends;
  last.state = state_at_end(schedule_, demand(), fabric_);
  finish_round(last);
  return {std::move(schedule_), chunks()};
}

bool WindowRounds::may_split() const {
  return 2 * chunks() <= problem_.most_chunks &&
         2 * static_cast<double>(incumbent_.plan.transfers.size()) <= kMostSplit;
}

/// In halves, which windows and replanting can move apart, a schedule may end earlier. Where data has one
/// destination it has to at once: there halves go one way.
void WindowRounds::split() {
  PlanSpace halves = with_chunks(space_, 2 * chunks());
  TransferPlan plan = split_in_halves(incumbent_.plan, halves);
  plan = justified(placed_forward(plan, halves, starts_of(plan)), halves);
  const double share = demand().is_unicast() ? 1 - kSameFinish : 1 + kSameFinish;
  if (plan.quality.finish_us > share * finish_us()) return;
  Schedule schedule = schedule_of(plan, halves);
  fabric_ = with_chunks(fabric_, 2 * chunks());
  idle_rounds_ = 0;
  take(std::move(schedule));
}

/// Collective. Trees of late chunks are grown anew, over the whole of the schedule.
std::optional<RoundPart> WindowRounds::replant() {
  if (!may_replant(space_)) return std::nullopt;
  const std::size_t transfers = incumbent_.plan.transfers.size();
  const double most =
      kWorkOfReplanting / (kWorkOfPlacing * kReplantingStreams * static_cast<double>(transfers));
  const auto length = static_cast<std::size_t>(std::clamp(most, 1.0, kReplanting));
  const std::uint64_t first =
      mix_bits(problem_.seed + 2) + kReplantingStreams * static_cast<std::uint64_t>(next_round_);
  std::vector<std::uint64_t> seeds(kReplantingStreams);
  std::iota(seeds.begin(), seeds.end(), first);
  const Stopwatch clock;
  const Deadline deadline(limits_left());
  space_.deadline = &deadline;
  const StreamRound found =
      play_streams({incumbent_, space_, problem_.bound_us, length}, seeds, false, communicator_);
  space_.deadline = nullptr;
  const double before_us = finish_us();
  if (found.winner) take(schedule_of(*found.winner, space_));
  return part_of_replanting(
      transfers, static_cast<std::int64_t>(kWorkOfPlacing) * static_cast<std::int64_t>(found.tries),
      clock.seconds(), before_us - finish_us());
}

double WindowRounds::critical(const SurveyedPlan& plan) const {
  double sum = 0;
  for (std::size_t i = 0; i < plan.plan.transfers.size(); ++i)
    sum += std::max(0.0, 1 - (plan.latest_start_us[i] - plan.plan.transfers[i].start_us) / most_us_);
  return sum;
}

/// Collective. Makes the best of the attempts the incumbent if it is better.
bool WindowRounds::try_attempts(const PlanView& view, const std::vector<Window>& windows,
                                const std::vector<WindowAnswer>& answers,
                                const std::vector<Attempt>& attempts, std::vector<char>& taken) {
  if (attempts.empty()) return false;
  const Quality before{finish_us(), critical(incumbent_)};
  auto found = best_of_parts(communicator_, attempts.size(), [&](std::size_t i) {
    TransferPlan plan = placed(view, windows, answers, attempts[i]);
    Quality quality{plan.quality.finish_us, kInfinity};
    if (quality.finish_us <= before.finish_us) quality.critical = critical(survey(plan, space_));
    return std::pair(quality, Placed{std::move(plan.transfers), plan.quality});
  });
  if (found.quality >= before) return false;
  const auto best = std::ranges::find(found.qualities, found.quality) - found.qualities.begin();
  taken = attempts[static_cast<std::size_t>(best)].which;
  const Placed winner = shared_winner(communicator_, found);
  take(schedule_of({winner.transfers, winner.quality}, space_));
  return true;
}

/// Collective. Places what the windows have found: those that do not touch together, else each alone. Returns
/// the windows whose answers the incumbent now has.
std::vector<char> WindowRounds::improve(const PlanView& view, const std::vector<Window>& windows,
                                        const std::vector<WindowAnswer>& answers) {
  std::vector<char> taken(windows.size(), 0);
  std::vector<std::size_t> useful;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (!answers[w].members.empty()) useful.push_back(w);
  }
  std::vector<Attempt> attempts;
  const auto try_ways = [&](std::span<const std::size_t> those) {
    std::vector<char> which(windows.size(), 0);
    for (const std::size_t w : those) which[w] = 1;
    for (const Free free : {Free::none, Free::moved, Free::members}) {
      for (const Order order : {Order::early_between_windows, Order::late})
        attempts.push_back({which, order, free});
    }
  };
  if (useful.empty()) return taken;
  std::ranges::stable_sort(
      useful, [&](std::size_t a, std::size_t b) { return answers[a].lambda_us > answers[b].lambda_us; });
  std::vector<std::size_t> together;
  for (const std::size_t w : useful) {
    if (std::ranges::none_of(together, [&](std::size_t other) { return touch(windows[w], windows[other]); }))
      together.push_back(w);
  }
  try_ways(together);
  if (together.size() > kShareOfBest) try_ways(std::span(together).first(together.size() / kShareOfBest));
  if (try_attempts(view, windows, answers, attempts, taken) || useful.size() == 1) return taken;
  attempts.clear();
  for (std::size_t k = 0; k < std::min(useful.size(), kAlone); ++k) try_ways({&useful[k], 1});
  try_attempts(view, windows, answers, attempts, taken);
  return taken;
}

RoundRecord WindowRounds::round() {
  RoundRecord record = empty_record();
  if (may_split() && (idle_rounds_ == kIdleBeforeSplit || is_least())) {
    split();
    record.chunks = chunks();
  }
  Random random(mix_bits(problem_.seed + 1) + static_cast<std::uint64_t>(next_round_));
  const ChosenWindows chosen = choose_windows(incumbent_, space_, problem_.windows, random);
  const std::vector<Window>& windows = chosen.windows;
  most_us_ = chosen.most_us;
  const PlanView view(incumbent_, space_, most_us_);
  std::vector<double> work;
  for (const Window& window : windows) work.push_back(static_cast<double>(window.members.size()));
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t w) {
    return to_message(solve_window(view, windows[w], milp_, limits_left()));
  });
  std::vector<WindowAnswer> answers;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (outcomes[w].error) throw *outcomes[w].error;
    answers.push_back(from_message<WindowAnswer>(outcomes[w].value));
    record.parts.push_back(part_of(windows[w], answers[w], outcomes[w]));
  }
  const std::vector<char> taken = improve(view, windows, answers);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (taken[w] != 0) record.parts[w].transfers_changed = answers[w].detours;
  }
  const bool is_vain = schedule_.finish_us >= record.finish_before_us;
  if (is_vain && idle_rounds_ % kIdleBetweenReplanting == 0) {
    if (auto part = replant()) record.parts.push_back(*std::move(part));
  }
  for (const RoundPart& part : record.parts) model_work_ += work_of(part);
  record.finish_after_us = std::min(record.finish_before_us, schedule_.finish_us);
  record.state = state_at_begin(demand());  // nothing is committed before the last round
  if (is_new_) record.plan = schedule_.sends;
  is_new_ = false;
  return record;
}

}  // namespace

RepairedSchedule repair_in_windows(const WindowsProblem& problem, const Solver& milp,
                                   const Communicator& communicator, const std::vector<RoundRecord>& finished,
                                   const std::optional<Schedule>& start, const FinishRound& finish_round,
                                   RoundsNotes& notes) {
  return WindowRounds(problem, milp, communicator, notes).run(finished, start, finish_round);
}

}  // namespace rondo
