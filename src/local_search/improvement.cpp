#include "rondo/local_search/improvement.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "improvement_state.hpp"
#include "replanting.hpp"
#include "rondo/core/random.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/local_search/streams.hpp"
#include "rondo/parallel/messages.hpp"
#include "starts.hpp"

namespace rondo {

namespace {

/// A round has kTriesPerRound streams, or as many more, up to those asked for, as leave kRoundsLeft rounds in
/// the work or time that a level may take.
constexpr double kRoundsLeft = 4;
/// Of all work or time, what counts as left at the end: rounds of few streams would keep few ranks at work.
constexpr double kLeastLeft = 0.25;
/// The search begins with the start of the most chunks (where data has one destination: the best start) that
/// has at most kEasyTransfers, and few enough for kTriesOfFirst tries, where there is one. If that has fewer
/// chunks than those with at most kEasyTransfers may have, the two race: each is searched from as if alone
/// until its level ends or it has had kShareOfRace of the work or time that is left; the earlier one goes on.
constexpr double kEasyTransfers = 4e4;
constexpr double kTriesOfFirst = 1000;
constexpr double kShareOfRace = 0.25;
/// Where the search begins with replanting, and nothing was searched before, starts tell little: that of at
/// most kFewReplanted transfers is replanted and split in turn.
constexpr double kFewReplanted = 6e3;
/// A level ends after this many tries in a row without a counting success, or after kMostTries tries. A
/// success counts if it closes kShareOfGap of the gap, or removes kShareOfPressure of the pressure in as
/// many tries as the least streams make.
constexpr std::uint64_t kIdleTries = 96;
constexpr std::uint64_t kIdleRoundsOfStreams = 4;  ///< at least, of more than kTriesPerRound streams
constexpr std::uint64_t kMostTries = 1024;
constexpr double kShareOfGap = 0.005;
/// Where replanting takes long, as moves do, a level also ends after the task's gainless_work without closing
/// as much of the gap, though pressure falls: less of it in plans of more than kSmallPlan transfers.
constexpr double kSmallPlan = 2e4;
constexpr double kShareOfPressure = 1e-4;
/// Where many transfers share the links of switches, which moves of single transfers find hard, a level
/// begins with rounds of replanting, until one closes less than this share of the gap: so many streams of
/// chains as long as so many tries. Where switches do not copy, only plans that are far from the bound are
/// worth it.
constexpr double kShareOfReplanting = 0.01;
constexpr std::size_t kReplantingStreams = 2;
constexpr std::size_t kReplanting = 32;
constexpr double kMostReplanted = 8e4;  ///< transfers of a plan
constexpr double kFar = 1.01;           ///< times the bound
/// Without switches it waits until so many tries of moves were in vain.
constexpr std::uint64_t kTriesBeforeReplanting = 16;
/// Share of the remaining work or time that every level but the last may take.
constexpr double kShareOfWork = 0.5;
/// Share of the time limit after which chunks are still split, but no further round begins.
constexpr double kShareBeforeLastCall = 0.85;
/// Estimated time of splitting all chunks, and of turning a start into a plan, in tries at that level.
constexpr double kTriesPerSplit = 4;
constexpr double kTriesPerStart = 12;
/// Estimated time for making a plan of the first start, before any try has been measured.
constexpr double kSecondsPerTransferOfStart = 2e-5;
/// A finish time this near to the least one for that many whole chunks cannot be improved at this level.
constexpr double kAtLeast = 1 + 1e-9;

class Improver {
 public:
  Improver(const ImprovementTask& task, const Communicator& communicator, const std::optional<Bytes>& from)
      : task_(task), communicator_(communicator), starts_(task, communicator), space_(space_of({})) {
    hops_of_fabric_ = space_.hops.size();
    if (!from) return;
    MessageReader message(*from);
    TransferPlan plan;
    message.read(state_);
    message.read(plan);
    message.read(rival_);
    restore(std::move(plan));
    starts_.recall(state_.restart);
  }

  Improvement run() {
    begin_step();
    if (state_.chunks == 0 && !begin()) return {.out_of_time = is_late_};
    Improvement found;
    while (!is_late_ && !task_.stop(best_finish_us())) {
      begin_step();
      found.out_of_work = state_.work >= task_.work_limit;
      const double in_turn = tries_in_turn(streams());
      const bool no_more_rounds =
          found.out_of_work || time_ >= kShareBeforeLastCall || !has_time_for(in_turn, state_.chunks);
      const bool last_level = state_.splits_in_vain || (!can_split() && !better_start_in_more_chunks());
      const bool idle = state_.idle_tries >= (last_level ? most_idle_tries() : kIdleTries) ||
                        gains_nothing() || finish_us() <= kAtLeast * least_us_;
      const bool enough = no_more_rounds || state_.level_tries >= kMostTries || spent() >= state_.level_end;
      const bool level_ends = last_level ? idle || no_more_rounds : idle || enough;
      if (state_.race != Race::none && (level_ends || spent() >= state_.race_end)) {
        state_.race == Race::second ? end_race() : race_second();
      } else if (!level_ends && state_.replanting == ReplantingTurn::next) {
        play_replanting_round();
      } else if (!level_ends && goes_on_replanting()) {
        state_.splits_in_vain = !next_level();
      } else if (!level_ends) {
        play_round();
        try_share_ = (task_.time_spent() - time_) / in_turn / transfers(state_.chunks);
      } else if (const std::size_t variants = starts_.variants(state_, time_)) {
        starts_.play_round(state_, variants, finish_us(), time_);
      } else if (last_level) {
        break;
      } else {
        // Splitting costs little and often gives most of the improvement: the incumbent passes through all
        // levels.
        state_.splits_in_vain = !next_level();
      }
      task_.progress(state_.rounds, state_.chunks, best_finish_us());
      task_.keep([this] { return packed(); }, false);
    }
    task_.keep([this] { return packed(); }, true);
    if (rival_) end_race();
    space_.deadline = nullptr;
    found.out_of_time = time_ >= kShareBeforeLastCall || is_short_of_time_ || is_late_;
    found.tries = state_.tries;
    found.successes = state_.successes;
    found.merged = state_.merged;
    if (finish_us() < starts_.finish_us()) {
      found.schedule = task_.orbits ? task_.orbits->unfolded(incumbent_.plan, state_.chunks)
                                    : schedule_of(incumbent_.plan, space_);
      found.chunks = state_.chunks;
      found.origin = state_.origin;
    } else if (!state_.restart.empty()) {
      const ImprovementTask::Start& last = starts_.last();
      found.schedule = last.schedule();
      found.chunks = last.chunks;
      found.origin = {last.chunks, last.variant};
    }
    return found;
  }

 private:
  Bytes packed() const {
    MessageWriter message;
    message.write(state_);
    message.write(incumbent_.plan);
    message.write(rival_);
    return message.take();
  }

  /// That of the search in a state: the hops of the topology and those that its plan uses besides.
  PlanSpace space_of(const ImprovementState& state) const {
    PlanSpace space = task_.orbits ? task_.orbits->space()
                                   : make_plan_space(task_.topology, task_.demand, task_.concurrency);
    if (state.chunks > 0) space = with_chunks(space, state.chunks);
    for (const auto& path : state.paths) space.add(make_hop(task_.topology, path));
    return space;
  }
  /// What belongs to the state and its plan.
  void restore(TransferPlan plan) {
    space_ = space_of(state_);
    incumbent_ = survey(std::move(plan), space_);
    least_us_ = task_.least_us(state_.chunks);
  }

  void begin_step() {
    time_ = task_.time_spent();
    if (task_.time_limit_s <= 0) return;
    deadline_ = task_.deadline();
    space_.deadline = &deadline_;
  }
  /// Collective. Whether `step`, which every rank does for itself, ended in time on all of them.
  template <class Step>
  bool ends_in_time(const Step& step) {
    bool is_late = false;
    try {
      step();
    } catch (const TimeIsOver&) {
      is_late = true;
    }
    if (task_.time_limit_s > 0) is_late_ = is_late_ || communicator_.max(is_late ? 1 : 0) > 0;
    return !is_late_;
  }

  double finish_us() const { return incumbent_.plan.quality.finish_us; }
  double best_finish_us() const { return std::min(finish_us(), starts_.finish_us()); }
  double spent() const { return std::max(time_, state_.work / task_.work_limit); }
  /// What will be spent when this share of the rest is.
  double spent_after(double share) const { return spent() + share * (1 - spent()); }
  /// Of the next round: of as many chunks as the incumbent has. Only a time limit makes it depend on ranks.
  std::size_t streams() const {
    const double by_time = try_share_ / communicator_.size();
    const double each = std::max(by_time, 1 / task_.work_limit) * transfers(state_.chunks);
    const double left = std::max(1 - spent(), kLeastLeft);
    const double most = each > 0 ? kShareOfWork * left / kRoundsLeft / each : 0;
    std::size_t count = kTriesPerRound;
    while (2 * count <= task_.most_streams && static_cast<double>(2 * count) <= most) count *= 2;
    return count;
  }
  /// Tries of so many streams that one rank makes one after another.
  double tries_in_turn(std::size_t streams) const {
    return std::ceil(static_cast<double>(streams) / communicator_.size());
  }
  bool has_time_for(double tries, int chunks) {
    const bool enough = time_ + tries * try_share_ * transfers(chunks) <= 1;
    is_short_of_time_ = is_short_of_time_ || !enough;
    return enough;
  }
  std::uint64_t most_idle_tries() const {
    const double rounds = task_.idle_work / (kTriesPerRound * transfers(state_.chunks));
    const std::uint64_t few = streams() > kTriesPerRound ? kIdleRoundsOfStreams * streams() : 0;
    return std::max({task_.idle_tries, few, kTriesPerRound * static_cast<std::uint64_t>(rounds)});
  }
  bool gains_nothing() const {
    const double share = std::min(1.0, kSmallPlan / transfers(state_.chunks));
    return state_.replanting_takes_long && state_.work - state_.work_at_gain > share * task_.gainless_work;
  }
  double transfers(int chunks) const { return transfers_of(task_, chunks); }

  /// Makes a start the incumbent; returns false where no plan can be made of it.
  bool take(const ImprovementTask::Start& start) {
    PlanSpace space = with_chunks(space_, start.chunks);
    std::optional<PlannedOrder> order = task_.orbits ? task_.orbits->folded(start.schedule(), start.chunks)
                                                     : order_of(start.schedule(), space);
    if (!order) return false;
    TransferPlan& plan = order->plan;
    const auto prepare = [&] {
      if (order->waits) {
        // In the same order without waiting.
        plan = placed_forward(plan, space, starts_of(plan));
      } else {
        // What is dropped and fetched again comes but once in plans, which may need more memory then.
        settle(plan, space);
      }
      plan = justified(plan, space);
    };
    // Relays with little memory may have no room for a chunk.
    if (!ends_in_time(prepare) || !std::isfinite(plan.quality.finish_us)) return false;
    if (!enter_level(std::move(space), std::move(plan))) return false;
    state_.origin = {start.chunks, start.variant};
    return true;
  }

  ReplantingTurn first_turn() const {
    const bool pays = replants_ && !state_.replanting_takes_long &&
                      transfers(state_.chunks) <= kMostReplanted &&
                      (space_.may_copy() || finish_us() > kFar * task_.bound_us);
    if (!pays) return ReplantingTurn::none;
    if (passes_switches(space_)) return ReplantingTurn::next;
    // Trees from one root are packed already.
    return space_.demand.contributions().size() > 1 ? ReplantingTurn::after_moves : ReplantingTurn::none;
  }

  /// False where time is over before; the level is as it was then.
  bool enter_level(PlanSpace space, TransferPlan plan) {
    SurveyedPlan surveyed;
    if (!ends_in_time([&] { surveyed = survey(std::move(plan), space); })) return false;
    space_ = std::move(space);
    incumbent_ = std::move(surveyed);
    state_.chunks = space_.demand.chunks_per_contribution();
    least_us_ = task_.least_us(state_.chunks);
    state_.idle_tries = 0;
    state_.level_tries = 0;
    state_.work_at_gain = state_.work;
    state_.replanting = first_turn();
    state_.level_end = spent_after(kShareOfWork);
    state_.paths.clear();
    for (std::size_t h = hops_of_fabric_; h < space_.hops.size(); ++h) {
      state_.paths.emplace_back();
      for (const HopLink& part : space_.hops[h].links) state_.paths.back().push_back(part.link);
    }
    return true;
  }

  bool begin() {
    const double easy = from_coarse_ ? kFewReplanted : kEasyTransfers;
    const ImprovementTask::Start* first =
        starts_.first(std::min(easy, task_.work_limit / kTriesOfFirst), from_coarse_);
    if (!first) return false;
    const double start_s = kSecondsPerTransferOfStart * transfers(first->chunks);
    if (time_ * task_.time_limit_s + start_s > task_.time_limit_s && task_.time_limit_s > 0) return false;
    if (double{kTriesPerRound} * transfers(first->chunks) > task_.work_limit) return false;
    if (!take(*first)) return false;
    if (!from_coarse_ && first != second_start()) begin_race(Race::first);
    return true;
  }

  const ImprovementTask::Start* second_start() const { return starts_.first(kEasyTransfers, false); }
  void begin_race(Race turn) {
    state_.race = turn;
    state_.race_end = spent_after(kShareOfRace);
  }
  void race_second() {
    rival_ = {std::exchange(state_, {}), std::move(incumbent_.plan)};
    space_ = space_of(state_);
    begin_race(Race::second);
    if (!take(*second_start())) end_race();
  }
  /// The earlier one goes on; of two that end together the one in more chunks.
  void end_race() {
    Rival rival = *std::exchange(rival_, std::nullopt);
    if (state_.chunks == 0 || rival.plan.quality.finish_us < finish_us()) {
      std::swap(state_, rival.state);
      restore(std::move(rival.plan));
      // Time went by meanwhile.
      if (spent() >= state_.level_end) state_.level_end = spent_after(kShareOfWork);
    }
    state_.race = Race::none;
    state_.tries += rival.state.tries;
    state_.successes += rival.state.successes;
    state_.merged += rival.state.merged;
  }

  /// Whether the plan, replanted, is split before single transfers are moved: replanting in more chunks finds
  /// more.
  bool goes_on_replanting() {
    return from_coarse_ && state_.replanting == ReplantingTurn::none && !state_.splits_in_vain &&
           transfers(2 * state_.chunks) <= kMostReplanted && can_split();
  }
  bool can_split() {
    const int halves = 2 * state_.chunks;
    return halves <= task_.most_chunks && transfers(halves) <= kMostPlannedTransfers &&
           has_time_for(kTriesPerSplit, halves);
  }
  const ImprovementTask::Start* better_start_in_more_chunks() {
    return starts_.better_in_more_chunks(state_.chunks, finish_us(), [this](int chunks) {
      return has_time_for(kTriesPerStart + tries_in_turn(kTriesPerRound), chunks);
    });
  }

  /// Returns false where more chunks give no improvement.
  bool next_level() {
    const double before_us = finish_us();
    const ImprovementTask::Start* start = better_start_in_more_chunks();
    if (can_split()) {
      PlanSpace halves = with_chunks(space_, 2 * state_.chunks);
      TransferPlan split = split_in_halves(incumbent_.plan, halves);
      if (!ends_in_time([&] { split = justified(placed_forward(split, halves, starts_of(split)), halves); }))
        return false;
      const bool replants = from_coarse_ && transfers(2 * state_.chunks) <= kMostReplanted;
      const bool earlier = closes_gap(split.quality) || (replants && split.quality.finish_us <= finish_us());
      if (!(start && start->finish_us < split.quality.finish_us) && earlier) {
        return enter_level(std::move(halves), std::move(split));
      }
    }
    return start && take(*start) && finish_us() < before_us;
  }

  bool closes_gap(const PlanQuality& better) const {
    return finish_us() - better.finish_us > kShareOfGap * (finish_us() - task_.bound_us);
  }
  bool counts(const PlanQuality& better, std::size_t tries) const {
    const double pressure = incumbent_.plan.quality.pressure_us;
    const double enough = kShareOfPressure * static_cast<double>(tries) / kTriesPerRound * pressure;
    return closes_gap(better) || pressure - better.pressure_us > enough;
  }

  void play_round() {
    // What was better is tried again: elsewhere in the plan, it may still be.
    std::vector<std::uint64_t> seeds = state_.good_seeds;
    add_seeds(seeds, streams());
    const StreamRound round = play_streams({incumbent_, space_, task_.bound_us}, seeds,
                                           seeds.size() > kTriesPerRound, communicator_);
    state_.level_tries += round.tries;
    state_.idle_tries =
        round.winner && counts(round.winner->quality, round.tries) ? 0 : state_.idle_tries + round.tries;
    state_.good_seeds = better_seeds(seeds, round.qualities, incumbent_.plan.quality);
    accept(round);
    if (state_.replanting == ReplantingTurn::after_moves && state_.idle_tries >= kTriesBeforeReplanting)
      state_.replanting = ReplantingTurn::next;
  }
  /// New ones, up to `most` with those that are there.
  void add_seeds(std::vector<std::uint64_t>& seeds, std::size_t most) {
    while (seeds.size() < most) seeds.push_back(mix_bits(task_.seed + 1) + state_.seeds + seeds.size());
    state_.seeds += seeds.size();
  }
  void play_replanting_round() {
    std::vector<std::uint64_t> seeds;
    add_seeds(seeds, kReplantingStreams);
    const StreamRound round =
        play_streams({incumbent_, space_, task_.bound_us, kReplanting}, seeds, false, communicator_);
    const double closed_us = round.winner ? finish_us() - round.winner->quality.finish_us : 0;
    state_.replanting_takes_long = round.took_long;
    if (closed_us > kShareOfReplanting * (finish_us() - task_.bound_us) && !round.took_long) {
      state_.idle_tries = 0;
    } else {
      state_.replanting = ReplantingTurn::none;
    }
    accept(round);
  }
  void accept(const StreamRound& round) {
    if (task_.time_limit_s > 0) is_late_ = communicator_.max(deadline_.is_over() ? 1 : 0) > 0;
    ++state_.rounds;
    state_.work += static_cast<double>(round.tries) * transfers(state_.chunks);
    state_.tries += round.tries;
    if (!round.winner) return;
    if (closes_gap(round.winner->quality)) {
      state_.splits_in_vain = false;
      state_.work_at_gain = state_.work;
    }
    ++state_.successes;
    state_.merged += round.merged - 1;
    // Nothing is derived from a plan that came last.
    if (!ends_in_time([&] { incumbent_ = survey(*round.winner, space_); }))
      incumbent_ = {std::move(*round.winner), {}, {}, {}};
  }

  const ImprovementTask& task_;
  const Communicator& communicator_;
  Starts starts_;
  double time_ = 0;    ///< share of the time limit that was over when the last round began
  Deadline deadline_;  ///< of the step that is being done, on this rank
  bool is_short_of_time_ = false;
  bool is_late_ = false;  ///< a step did not end before its deadline
  double try_share_ = 0;  ///< of the time limit, that a try took for each transfer
  PlanSpace space_;
  const bool replants_ = may_replant(space_);
  const bool from_coarse_ = replants_ && passes_switches(space_) && !task_.is_kept;
  std::size_t hops_of_fabric_ = 0;
  double least_us_ = 0;  ///< the least finish time in as many whole chunks as the plan's
  ImprovementState state_;
  SurveyedPlan incumbent_;
  std::optional<Rival> rival_;
};

}  // namespace

bool begins_with_replanting(const Topology& topology, const Demand& demand) {
  const PlanSpace space = make_plan_space(topology, demand);
  return may_replant(space) && passes_switches(space);
}

Improvement improve(const ImprovementTask& task, const Communicator& communicator,
                    const std::optional<Bytes>& from) {
  return Improver(task, communicator, from).run();
}

}  // namespace rondo
