#include "rondo/windows/window_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/local_search/improvement.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/parallel/best_of_parts.hpp"
#include "window_records.hpp"
#include "window_solver.hpp"

namespace rondo {
namespace {

constexpr std::size_t kWindows = 8;  ///< of a round, at most
constexpr std::size_t kAlone = 4;    ///< windows whose answers are placed alone where not all fit together
constexpr std::size_t kFewestMembers = 100;
constexpr std::size_t kMostMembers = 400;
constexpr int kIdleRounds = 16;  ///< in a row without an earlier finish, after which the rounds end
/// Of the finish time: transfers with less slack are critical.
constexpr double kNoSlack = 1e-6;
/// Finish times that differ by less, as a share, are the same.
constexpr double kSameFinish = 1e-9;

struct Quality {
  double finish_us = kInfinity;
  double critical = kInfinity;  ///< transfers without slack, those with a little of it counted in part
  friend auto operator<=>(const Quality&, const Quality&) = default;
};

struct Placed {
  std::vector<PlannedTransfer> transfers = {};
  PlanQuality quality = {};
};
auto members_of(SameAs<Placed> auto& p) {
  return std::tie(p.transfers, p.quality);
}

/// In which order transfers are placed that no window has moved.
enum class Order : std::uint8_t { early_between_windows, late };

/// Which windows' answers to place, and how.
struct Attempt {
  std::vector<char> which;
  Order order;
};

class WindowRounds {
 public:
  WindowRounds(const WindowsProblem& problem, const Solver& milp, const Communicator& communicator,
               RoundsNotes& notes)
      : problem_(problem),
        milp_(milp),
        communicator_(communicator),
        notes_(notes),
        fabric_(make_plan_space(problem.topology, problem.demand, problem.concurrency)) {}

  Schedule run(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start,
               const FinishRound& finish_round);

 private:
  bool resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start);
  void take(Schedule schedule);
  bool goes_on();
  RoundRecord round();
  RoundRecord empty_record() const;
  std::vector<Window> choose(double& most_us);
  std::vector<char> improve(const std::vector<Window>& windows, const std::vector<WindowAnswer>& answers);
  bool try_attempts(const std::vector<Window>& windows, const std::vector<WindowAnswer>& answers,
                    const std::vector<Attempt>& attempts, std::vector<char>& taken);
  Placed placed(const std::vector<Window>& windows, const std::vector<WindowAnswer>& answers,
                const Attempt& attempt) const;
  double critical(const SurveyedPlan& plan) const;
  void check_signal() const;
  void hit(const std::string& limit);
  double seconds_left() const { return problem_.limits.time_limit_s - clock_.seconds(); }
  double finish_us() const { return incumbent_.plan.quality.finish_us; }

  const WindowsProblem& problem_;
  const Solver& milp_;
  const Communicator& communicator_;
  RoundsNotes& notes_;
  const PlanSpace fabric_;
  PlanSpace space_ = fabric_;  ///< with the hops of the schedule besides
  Schedule schedule_;          ///< the best one known
  bool is_new_ = true;         ///< no record has it yet
  bool has_plan_ = false;      ///< of the schedule
  SurveyedPlan incumbent_ = {};
  double most_us_ = 0;  ///< of this round's windows
  std::int64_t next_round_ = 0;
  int idle_rounds_ = 0;
  double model_work_ = 0;
  double longest_round_s_ = 0;
  Stopwatch clock_;
};

/// The schedule as the plan that windows are chosen in; the same from a record as in the run that wrote it.
void WindowRounds::take(Schedule schedule) {
  schedule_ = std::move(schedule);
  is_new_ = true;
  space_ = fabric_;
  std::optional<TransferPlan> plan = plan_of(schedule_, space_);
  // Windows move transfers one by one, and what switches copy moves together.
  has_plan_ =
      plan && std::ranges::none_of(plan->transfers, [](const PlannedTransfer& t) { return t.copy_of >= 0; });
  if (!has_plan_) return;
  incumbent_ = survey(*std::move(plan), space_);
}

/// Returns whether the rounds have committed their schedule.
bool WindowRounds::resume(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start) {
  const std::vector<Send>* newest = nullptr;
  for (const RoundRecord& record : finished) {
    if (record.plan) newest = &*record.plan;
    if (!record.sends.empty()) newest = &record.sends;
    for (const RoundPart& part : record.parts)
      model_work_ += static_cast<double>(part.rows) * static_cast<double>(part.iterations + part.columns);
    idle_rounds_ = record.finish_after_us < record.finish_before_us ? 0 : idle_rounds_ + 1;
    next_round_ = record.round + 1;
  }
  if (newest == nullptr && !start)
    throw Error(ExitCode::bad_data, "no round file has a plan; solve the problem again without them");
  take(newest != nullptr ? Schedule{*newest, finished.back().finish_after_us} : *start);
  is_new_ = newest == nullptr;
  return newest != nullptr && !finished.back().sends.empty();
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
  if (finish_us() <= problem_.stop_at_us || idle_rounds_ >= kIdleRounds) return false;
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
  record.chunks = problem_.demand.chunks_per_contribution();
  record.bound_us = problem_.bound_us;
  record.finish_before_us = record.finish_after_us = schedule_.finish_us;
  return record;
}

Schedule WindowRounds::run(const std::vector<RoundRecord>& finished, const std::optional<Schedule>& start,
                           const FinishRound& finish_round) {
  if (resume(finished, start)) return std::move(schedule_);
  if (!finished.empty() || !has_plan_) {
    // A record's schedule is tight already.
  } else if (TransferPlan tight = justified(incumbent_.plan, space_);
             tight.quality.finish_us < finish_us() * (1 - kSameFinish)) {
    take(schedule_of(tight, space_));
  }
  for (;;) {
    check_signal();
    if (!goes_on()) break;
    const Stopwatch clock;
    RoundRecord record = round();
    check_signal();  // a signal may have cut a model short, whose result then would depend on time
    longest_round_s_ = std::max(longest_round_s_, clock.seconds());
    idle_rounds_ = record.finish_after_us < record.finish_before_us ? 0 : idle_rounds_ + 1;
    finish_round(record);
    ++next_round_;
  }
  RoundRecord last = empty_record();
  last.end_us = schedule_.finish_us;
  last.sends = schedule_.sends;
  last.state = state_at_end(schedule_, problem_.demand, fabric_);
  finish_round(last);
  return std::move(schedule_);
}

double WindowRounds::critical(const SurveyedPlan& plan) const {
  double sum = 0;
  for (std::size_t i = 0; i < plan.plan.transfers.size(); ++i)
    sum += std::max(0.0, 1 - (plan.latest_start_us[i] - plan.plan.transfers[i].start_us) / most_us_);
  return sum;
}

/// Windows at random around critical transfers, in the order of time. `most_us`: what critical transfers
/// take of their links, the median, which is what leading one of them elsewhere gains.
std::vector<Window> WindowRounds::choose(double& most_us) {
  const auto& transfers = incumbent_.plan.transfers;
  std::vector<double> starts;
  std::vector<double> occupied;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& t = transfers[i];
    if (incumbent_.latest_start_us[i] - t.start_us > kNoSlack * finish_us()) continue;
    starts.push_back(t.start_us);
    for (const HopLink& part : space_.hop(t).links) occupied.push_back(part.occupied_us(space_.bytes(t)));
  }
  if (starts.empty()) return {};
  std::ranges::sort(starts);
  const auto middle = occupied.begin() + static_cast<std::ptrdiff_t>(occupied.size() / 2);
  std::ranges::nth_element(occupied, middle);
  most_us = *middle;

  Random random(mix_bits(problem_.seed + 1) + static_cast<std::uint64_t>(next_round_));
  const std::size_t members = kFewestMembers + random.below(kMostMembers - kFewestMembers + 1);
  const WindowChooser chooser(incumbent_);
  std::vector<Window> windows;
  for (std::size_t w = 0; w < kWindows; ++w) {
    const double share = (static_cast<double>(w) + random.unit()) / static_cast<double>(kWindows);
    const double from_us = starts[static_cast<std::size_t>(share * static_cast<double>(starts.size()))];
    if (!windows.empty() && from_us < windows.back().until_us) continue;
    Window window = chooser.from(from_us, members);
    if (!window.members.empty()) windows.push_back(std::move(window));
  }
  return windows;
}

Placed WindowRounds::placed(const std::vector<Window>& windows, const std::vector<WindowAnswer>& answers,
                            const Attempt& attempt) const {
  TransferPlan plan = incumbent_.plan;
  std::vector<double> key = incumbent_.latest_start_us;
  if (attempt.order == Order::early_between_windows) {
    // In a window and as long again after it others give way.
    std::vector<char> gives_way(key.size(), 0);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (attempt.which[w] == 0) continue;
      const double until_us = 2 * windows[w].until_us - windows[w].from_us;
      for (std::size_t i = 0; i < key.size(); ++i) {
        const double start_us = plan.transfers[i].start_us;
        if (start_us >= windows[w].from_us && start_us < until_us) gives_way[i] = 1;
      }
    }
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (gives_way[i] == 0) key[i] = plan.transfers[i].start_us;
    }
  }
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (attempt.which[w] == 0) continue;
    for (const WindowAnswer::Member& member : answers[w].members) {
      PlannedTransfer& t = plan.transfers[index(member.transfer)];
      const bool is_moved = member.hop != t.hop || member.cause != t.cause;
      if (is_moved || attempt.order == Order::early_between_windows)
        key[index(member.transfer)] = member.start_us;
      t.hop = member.hop;
      t.cause = member.cause;
    }
  }
  TransferPlan tight = placed_forward(plan, space_, key);
  if (tight.quality.finish_us < finish_us() + most_us_) tight = justified(tight, space_);
  return {std::move(tight.transfers), tight.quality};
}

/// Collective. Makes the best of the attempts the incumbent if it is better.
bool WindowRounds::try_attempts(const std::vector<Window>& windows, const std::vector<WindowAnswer>& answers,
                                const std::vector<Attempt>& attempts, std::vector<char>& taken) {
  if (attempts.empty()) return false;
  const Quality before{finish_us(), critical(incumbent_)};
  auto found = best_of_parts(communicator_, attempts.size(), [&](std::size_t i) {
    Placed plan = placed(windows, answers, attempts[i]);
    Quality quality{plan.quality.finish_us, kInfinity};
    if (quality.finish_us <= before.finish_us)
      quality.critical = critical(survey({plan.transfers, plan.quality}, space_));
    return std::pair(quality, std::move(plan));
  });
  if (found.quality >= before) return false;
  const auto best = std::ranges::find(found.qualities, found.quality) - found.qualities.begin();
  taken = attempts[static_cast<std::size_t>(best)].which;
  const Placed winner = shared_winner(communicator_, found);
  take(schedule_of({winner.transfers, winner.quality}, space_));
  return true;
}

/// Collective. Places what the windows have found: all of it, else parts of it. Returns the windows whose
/// answers the incumbent now has.
std::vector<char> WindowRounds::improve(const std::vector<Window>& windows,
                                        const std::vector<WindowAnswer>& answers) {
  std::vector<char> taken(windows.size(), 0);
  std::vector<std::size_t> useful;  // by lambda
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (!answers[w].members.empty()) useful.push_back(w);
  }
  const auto of = [&](std::span<const std::size_t> those, Order order) {
    Attempt attempt{std::vector<char>(windows.size(), 0), order};
    for (const std::size_t w : those) attempt.which[w] = 1;
    return attempt;
  };
  if (useful.empty()) return taken;
  std::vector<Attempt> attempts{of(useful, Order::early_between_windows), of(useful, Order::late)};
  if (try_attempts(windows, answers, attempts, taken) || useful.size() == 1) return taken;
  std::ranges::stable_sort(
      useful, [&](std::size_t a, std::size_t b) { return answers[a].lambda_us > answers[b].lambda_us; });
  attempts.clear();
  for (std::size_t k = 0; k < std::min(useful.size(), kAlone); ++k)
    attempts.push_back(of({&useful[k], 1}, Order::early_between_windows));
  try_attempts(windows, answers, attempts, taken);
  return taken;
}

RoundRecord WindowRounds::round() {
  RoundRecord record = empty_record();
  const std::vector<Window> windows = choose(most_us_);
  const PlanView view(incumbent_, space_, most_us_);
  SolveLimits limits = problem_.limits;
  if (limits.time_limit_s >= 0) limits.time_limit_s = std::max(0.0, seconds_left());
  std::vector<double> work;
  for (const Window& window : windows) work.push_back(static_cast<double>(window.members.size()));
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t w) {
    return to_message(solve_window(view, windows[w], milp_, limits));
  });
  std::vector<WindowAnswer> answers;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (outcomes[w].error) throw *outcomes[w].error;
    answers.push_back(from_message<WindowAnswer>(outcomes[w].value));
    RoundPart part = part_of(windows[w], answers[w], outcomes[w]);
    model_work_ += static_cast<double>(part.rows) * static_cast<double>(part.iterations + part.columns);
    record.parts.push_back(std::move(part));
  }
  const std::vector<char> taken = improve(windows, answers);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (taken[w] != 0) record.parts[w].transfers_changed = answers[w].detours;
  }
  record.finish_after_us = std::min(record.finish_before_us, schedule_.finish_us);
  record.state = state_at_begin(problem_.demand);  // nothing is committed before the last round
  if (is_new_) record.plan = schedule_.sends;
  is_new_ = false;
  return record;
}

}  // namespace

Schedule repair_in_windows(const WindowsProblem& problem, const Solver& milp,
                           const Communicator& communicator, const std::vector<RoundRecord>& finished,
                           const std::optional<Schedule>& start, const FinishRound& finish_round,
                           RoundsNotes& notes) {
  return WindowRounds(problem, milp, communicator, notes).run(finished, start, finish_round);
}

}  // namespace rondo
