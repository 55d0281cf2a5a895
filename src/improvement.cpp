#include "improvement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "rondo/core/random.hpp"
#include "rondo/engines/justification.hpp"
#include "rondo/engines/neighbours.hpp"
#include "rondo/parallel/best_of_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

auto members_of(SameAs<TransferPlan> auto& p) {
  return std::tie(p.transfers, p.quality);
}

namespace {

constexpr std::size_t kTriesPerRound = 8;
/// Plans of more transfers are left to later levels, where starts of fewer are known.
constexpr double kEasyTransfers = 4e4;
/// Rounds in a row without a success that counts end a level, and so many rounds in all. A success counts
/// that closes this share of the gap or takes this share of the pressure.
constexpr std::uint64_t kIdleRounds = 4;
constexpr std::uint64_t kIdleRoundsInMostChunks = 24;
constexpr std::uint64_t kMostRounds = 128;
constexpr double kShareOfGap = 0.005;
constexpr double kShareOfPressure = 1e-4;
/// Of the work that is left, for every level but the last.
constexpr double kShareOfWork = 0.5;

/// How far the search is after a whole number of rounds.
struct ImprovementState {
  std::uint64_t rounds = 0;
  std::uint64_t idle_rounds = 0;   ///< in a row, at this number of chunks
  std::uint64_t level_rounds = 0;  ///< at this number of chunks
  std::uint64_t successes = 0;
  double work = 0;
  double work_left_for_level = 0;
  int chunks = 0;               ///< of the plan; 0: not begun
  bool splits_in_vain = false;  ///< more chunks brought nothing since the last success that counts
  std::vector<std::vector<LinkId>> ways = {};  ///< the hops that a plan space does not begin with
};

auto members_of(SameAs<ImprovementState> auto& s) {
  return std::tie(s.rounds, s.idle_rounds, s.level_rounds, s.successes, s.work, s.work_left_for_level,
                  s.chunks, s.splits_in_vain, s.ways);
}

class Improver {
 public:
  Improver(const ImprovementTask& task, const Communicator& communicator, const std::optional<Bytes>& from)
      : task_(task), communicator_(communicator), space_(make_plan_space(task.topology, task.demand)) {
    hops_of_fabric_ = space_.hops.size();
    for (const auto& start : task.starts) known_finish_us_ = std::min(known_finish_us_, start.finish_us);
    if (!from) return;
    MessageReader message(*from);
    TransferPlan plan;
    message.read(state_);
    message.read(plan);
    space_ = with_chunks(space_, state_.chunks);
    for (const auto& way : state_.ways) space_.add(make_hop(task.topology, way));
    incumbent_ = survey(std::move(plan), space_);
  }

  Improvement run() {
    if (state_.chunks == 0 && !begin()) return {};
    Improvement found;
    while (!task_.stop(std::min(finish_us(), known_finish_us_))) {
      const bool last_level = state_.splits_in_vain || (!can_split() && !better_start_in_more_chunks());
      const bool idle = state_.idle_rounds >= (last_level ? kIdleRoundsInMostChunks : kIdleRounds);
      found.out_of_work = state_.work >= task_.work_limit;
      found.out_of_time = task_.last_call();
      const bool no_more_rounds = found.out_of_work || found.out_of_time;
      const bool enough =
          no_more_rounds || state_.level_rounds >= kMostRounds || state_.work_left_for_level <= 0;
      // Splitting costs little and often brings most: what has been found goes through all levels.
      if (last_level ? idle || no_more_rounds : idle || enough) {
        if (last_level) break;
        state_.splits_in_vain = !next_level();
      } else {
        play_round();
      }
      task_.progress(state_.rounds, state_.chunks, finish_us());
      task_.keep([this] { return packed(); }, false);
    }
    task_.keep([this] { return packed(); }, true);
    found.tries = state_.rounds * kTriesPerRound;
    found.successes = state_.successes;
    if (finish_us() < known_finish_us_) {
      found.schedule = schedule_of(incumbent_.plan, space_);
      found.chunks = state_.chunks;
    }
    return found;
  }

 private:
  Bytes packed() const {
    MessageWriter message;
    message.write(state_);
    message.write(incumbent_.plan);
    return message.take();
  }

  double finish_us() const { return incumbent_.plan.quality.finish_us; }
  double transfers(int chunks) const { return task_.demand.with_chunks(chunks).num_deliveries(); }

  /// Takes a start for the incumbent; false where no plan can be made of it.
  bool take(const ImprovementTask::Start& start) {
    PlanSpace space = with_chunks(space_, start.chunks);
    std::optional<TransferPlan> plan = plan_of(start.schedule(), space);
    if (!plan) return false;
    TransferPlan tight = justified(*plan, space);
    enter_level(std::move(space), std::move(tight));
    return true;
  }

  void enter_level(PlanSpace space, TransferPlan plan) {
    space_ = std::move(space);
    incumbent_ = survey(std::move(plan), space_);
    state_.chunks = space_.demand.chunks_per_contribution();
    state_.idle_rounds = 0;
    state_.level_rounds = 0;
    state_.work_left_for_level = kShareOfWork * (task_.work_limit - state_.work);
    state_.ways.clear();
    for (std::size_t h = hops_of_fabric_; h < space_.hops.size(); ++h) {
      state_.ways.emplace_back();
      for (const HopLink& part : space_.hops[h].links) state_.ways.back().push_back(part.link);
    }
  }

  bool begin() {
    const ImprovementTask::Start* first = nullptr;
    for (const auto& start : task_.starts) {
      const bool fits = transfers(start.chunks) <= kMostPlannedTransfers;
      if (fits && (!first || transfers(start.chunks) <= kEasyTransfers)) first = &start;
      // More chunks than of the best are no help.
      if (start.finish_us <= known_finish_us_) break;
    }
    if (!first) return false;
    if (kTriesPerRound * transfers(first->chunks) > task_.work_limit) return false;
    return take(*first);
  }

  bool can_split() const {
    return 2 * state_.chunks <= task_.most_chunks && transfers(2 * state_.chunks) <= kMostPlannedTransfers;
  }
  const ImprovementTask::Start* better_start_in_more_chunks() const {
    const ImprovementTask::Start* best = nullptr;
    for (const auto& start : task_.starts) {
      if (start.chunks > state_.chunks && start.finish_us < (best ? best->finish_us : finish_us()) &&
          transfers(start.chunks) <= kMostPlannedTransfers) {
        best = &start;
      }
    }
    return best;
  }

  /// False where more chunks bring nothing.
  bool next_level() {
    const double before_us = finish_us();
    const ImprovementTask::Start* start = better_start_in_more_chunks();
    if (can_split()) {
      PlanSpace halves = with_chunks(space_, 2 * state_.chunks);
      TransferPlan split = split_in_halves(incumbent_.plan, halves);
      std::vector<double> key;
      for (const PlannedTransfer& t : split.transfers) key.push_back(t.start_us);
      split = justified(placed_forward(split, halves, key), halves);
      const bool earlier = closes_gap(split.quality);
      if (!(start && start->finish_us < split.quality.finish_us) && earlier) {
        enter_level(std::move(halves), std::move(split));
        return true;
      }
    }
    return start && take(*start) && finish_us() < before_us;
  }

  bool closes_gap(const PlanQuality& better) const {
    return finish_us() - better.finish_us > kShareOfGap * (finish_us() - task_.bound_us);
  }
  bool counts(const PlanQuality& better) const {
    const double pressure = incumbent_.plan.quality.pressure_us;
    return closes_gap(better) || pressure - better.pressure_us > kShareOfPressure * pressure;
  }

  void play_round() {
    auto found = best_of_parts(communicator_, kTriesPerRound, [&](std::size_t i) {
      const std::uint64_t seed = mix_bits(task_.seed + 1) + state_.rounds * kTriesPerRound + i;
      TransferPlan plan = neighbour_of(incumbent_, space_, task_.bound_us, seed);
      const PlanQuality quality = plan.quality;
      return std::pair(quality, std::move(plan));
    });
    const PlanQuality best = found.quality;
    const bool better = best < incumbent_.plan.quality;
    ++state_.rounds;
    ++state_.level_rounds;
    const double work = static_cast<double>(kTriesPerRound) * transfers(state_.chunks);
    state_.work += work;
    state_.work_left_for_level -= work;
    state_.idle_rounds = better && counts(best) ? 0 : state_.idle_rounds + 1;
    if (!better) return;
    if (closes_gap(best)) state_.splits_in_vain = false;
    ++state_.successes;
    TransferPlan winner = shared_winner(communicator_, found);
    drop_useless(winner, space_);
    incumbent_ = survey(std::move(winner), space_);
  }

  const ImprovementTask& task_;
  const Communicator& communicator_;
  PlanSpace space_;
  std::size_t hops_of_fabric_ = 0;
  double known_finish_us_ = std::numeric_limits<double>::infinity();
  ImprovementState state_;
  SurveyedPlan incumbent_;
};

}  // namespace

Improvement improve(const ImprovementTask& task, const Communicator& communicator,
                    const std::optional<Bytes>& from) {
  return Improver(task, communicator, from).run();
}

}  // namespace rondo
