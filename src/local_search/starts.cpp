#include "starts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rondo/parallel/best_of_parts.hpp"

namespace rondo {
namespace {

/// Variants of list scheduling that the first restart round tries, in the fewest chunks.
constexpr double kRestartVariants = 32;
/// Share of the remaining work or time that this first round may take, and each later one.
constexpr double kShareOfChoosing = 0.25;
constexpr double kShareOfLater = 0.5;

}  // namespace

double transfers_of(const ImprovementTask& task, int chunks) {
  const Demand& demand = task.orbits ? task.orbits->space().demand : task.demand;
  return demand.with_chunks(chunks).num_deliveries();
}

Starts::Starts(const ImprovementTask& task, const Communicator& communicator)
    : task_(task),
      communicator_(communicator),
      all_(task.starts),
      finish_us_(task.known_us),
      share_(task.restart_share) {
  for (const Start& start : all_) finish_us_ = std::min(finish_us_, start.finish_us);
}

void Starts::recall(const std::vector<RestartFind>& finds) {
  for (const RestartFind& find : finds) {
    remember(find, [this, find] {
      return std::move(*task_.restart(find.chunks, find.variant, RestartLimits::none));
    });
  }
}

const Starts::Start* Starts::first(double most_easy, bool even_later) const {
  const Start* first = nullptr;
  for (const Start& start : all_) {
    const double transfers = transfers_of(task_, start.chunks);
    const bool fits = transfers <= kMostPlannedTransfers;
    const bool is_easy = transfers <= most_easy;
    // Of data with one destination, more chunks at an equal finish are nothing but more work.
    const bool is_preferred = !task_.demand.is_unicast() || (first && start.finish_us < first->finish_us);
    if (fits && (!first || (is_easy && is_preferred))) first = &start;
    // In most searches starts in more chunks than the best one are no better.
    if (start.finish_us <= finish_us_ && !even_later) break;
  }
  return first;
}

const Starts::Start* Starts::better_in_more_chunks(int chunks, double finish_us,
                                                   const std::function<bool(int chunks)>& has_time) const {
  const Start* best = nullptr;
  for (const Start& start : all_) {
    if (start.chunks > chunks && start.finish_us < (best ? best->finish_us : finish_us) &&
        transfers_of(task_, start.chunks) <= kMostPlannedTransfers && has_time(start.chunks)) {
      best = &start;
    }
  }
  return best;
}

std::size_t Starts::variants(const ImprovementState& state, double time) const {
  if (state.restart_rounds >= task_.restart_chunks.size()) return 0;
  const double each = transfers_of(task_, task_.restart_chunks[state.restart_rounds]);
  const double by_work = (task_.work_limit - state.work) / (task_.restart_work * each);
  const double by_time = share_ > 0 ? (1 - time) / (share_ * each) : by_work;
  const bool is_first = state.restart_rounds == 0;
  const double share = is_first ? kShareOfChoosing : kShareOfLater;
  const double most =
      is_first ? kRestartVariants : std::ceil(static_cast<double>(state.restart_best.size()) / 2);
  return static_cast<std::size_t>(std::clamp(share * std::min(by_work, by_time), 0.0, most));
}

void Starts::play_round(ImprovementState& state, std::size_t count, double finish_us, double time) {
  const ImprovementState before = state;
  const int chunks = task_.restart_chunks[state.restart_rounds++];
  std::vector<std::size_t> variants = state.restart_best;
  if (variants.empty()) {
    for (std::size_t i = 0; i < count; ++i) variants.push_back(i);
  }
  variants.resize(count);
  const double to_beat_us = std::min(finish_us, finish_us_);
  auto found = best_of_parts(communicator_, count, [&](std::size_t i) {
    std::optional<Schedule> schedule = task_.restart(chunks, variants[i], RestartLimits::of_search);
    const double finish = schedule ? schedule->finish_us : std::numeric_limits<double>::infinity();
    RestartSchedule restart{{chunks, variants[i], finish}};
    if (finish < to_beat_us) restart.sends = std::move(schedule->sends);
    return std::pair(finish, std::move(restart));
  });
  const double transfers = transfers_of(task_, chunks);
  share_ = (task_.time_spent() - time) / (static_cast<double>(count) * transfers);
  if (task_.interrupted()) {
    // An interrupted round may differ from an undisturbed one, so its results are dropped.
    state = before;
    return;
  }
  state.work += static_cast<double>(count) * task_.restart_work * transfers;
  state.tries += count;
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < count; ++i) ranked.emplace_back(found.qualities[i], variants[i]);
  std::ranges::sort(ranked);
  state.restart_best.clear();
  for (const auto& [finish, variant] : ranked) state.restart_best.push_back(variant);
  if (found.quality >= to_beat_us) return;
  RestartSchedule winner = shared_winner(communicator_, found);
  ++state.successes;
  state.splits_in_vain = false;
  state.restart.push_back(winner.find);
  remember(winner.find, [kept = Schedule{std::move(winner.sends), found.quality}] { return kept; });
}

/// A restart that is the best schedule so far.
void Starts::remember(const RestartFind& find, std::function<Schedule()> schedule) {
  finish_us_ = find.finish_us;
  all_.push_back({find.chunks, find.finish_us, std::move(schedule), find.variant});
}

}  // namespace rondo
