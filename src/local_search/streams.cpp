#include "rondo/local_search/streams.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "improvement_state.hpp"
#include "merging.hpp"
#include "replanting.hpp"
#include "rondo/parallel/best_of_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

/// Neighbours whose changes may be merged, at most: all ranks receive them.
constexpr std::size_t kMostMerged = 16;
constexpr std::size_t kMostBetterSeeds = 4;
constexpr PlanQuality kNothingChanged{std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::infinity()};

struct StreamOutcome {
  PlanQuality quality;
  bool took_long;
};

/// The plans of this rank's streams that may be merged, best first.
class BestHere {
 public:
  explicit BestHere(std::size_t most) : most_(most) {}

  void offer(std::size_t stream, TransferPlan plan) {
    const std::pair rank(plan.quality, stream);
    plans_.emplace(rank, std::move(plan));
    if (plans_.size() > most_) plans_.erase(std::prev(plans_.end()));
  }
  /// Of a stream that is among the best `most` of all ranks.
  const TransferPlan& of(std::size_t stream, const PlanQuality& quality) const {
    return plans_.at({quality, stream});
  }

 private:
  std::size_t most_;
  std::map<std::pair<PlanQuality, std::size_t>, TransferPlan> plans_;
};

/// The streams with a quality better than `before`, best first, at most `most`.
std::vector<std::size_t> best_streams(const std::vector<PlanQuality>& qualities, const PlanQuality& before,
                                      std::size_t most) {
  std::vector<std::pair<PlanQuality, std::size_t>> ranked;
  for (std::size_t i = 0; i < qualities.size(); ++i) {
    if (qualities[i] < before) ranked.emplace_back(qualities[i], i);
  }
  std::ranges::sort(ranked);
  if (ranked.size() > most) ranked.resize(most);
  std::vector<std::size_t> streams;
  for (const auto& [quality, i] : ranked) streams.push_back(i);
  return streams;
}

/// Collective. The plans of these streams, in their order, on every rank.
std::vector<TransferPlan> gathered(const std::vector<std::size_t>& streams,
                                   const std::vector<PlanQuality>& qualities,
                                   const std::vector<PartOutcome>& outcomes, const BestHere& here,
                                   const Communicator& communicator) {
  MessageWriter message;
  for (const std::size_t i : streams) {
    if (outcomes[i].rank == communicator.rank()) message.write(here.of(i, qualities[i]));
  }
  const std::vector<Bytes> received = communicator.all_gather(message.take());
  std::vector<MessageReader> readers(received.begin(), received.end());
  std::vector<TransferPlan> plans(streams.size());
  for (std::size_t k = 0; k < streams.size(); ++k)
    readers[static_cast<std::size_t>(outcomes[streams[k]].rank)].read(plans[k]);
  return plans;
}

/// Nothing where the time of this rank is over before the plan is made: others may have theirs.
template <class Make>
std::optional<TransferPlan> in_time(const Make& make) {
  try {
    return make();
  } catch (const TimeIsOver&) {
    return std::nullopt;
  }
}

/// 2, 4, 8 and so on below the number of plans, and their number.
std::vector<std::size_t> counts_to_merge(std::size_t plans) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 2; n < plans; n *= 2) counts.push_back(n);
  counts.push_back(plans);
  return counts;
}

}  // namespace

StreamRound play_streams(const StreamTask& task, const std::vector<std::uint64_t>& seeds, bool merge,
                         const Communicator& communicator) {
  const PlanQuality before = task.incumbent.plan.quality;
  const std::size_t most = merge ? kMostMerged : 1;
  BestHere here(most);
  const auto outcomes = map_parts(communicator, std::vector<double>(seeds.size(), 1.0), [&](std::size_t i) {
    bool took_long = false;
    std::optional<TransferPlan> plan = in_time([&] {
      if (task.replanting == 0) return neighbour_of(task.incumbent, task.space, task.bound_us, seeds[i]);
      Replanting found = replanted(task.incumbent, task.space, task.bound_us,
                                   static_cast<double>(task.replanting), seeds[i]);
      took_long = found.took_long;
      return std::move(found.plan);
    });
    const PlanQuality quality = plan ? plan->quality : kNothingChanged;
    if (quality < before) here.offer(i, std::move(*plan));
    return to_message(StreamOutcome{quality, took_long});
  });
  StreamRound round;
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    const auto [quality, took_long] = from_message<StreamOutcome>(outcome.value);
    round.qualities.push_back(quality);
    round.took_long = round.took_long || took_long;
  }
  round.tries = seeds.size() * std::max<std::size_t>(1, task.replanting);
  const std::vector<std::size_t> streams = best_streams(round.qualities, before, most);
  if (streams.empty()) return round;
  std::vector<TransferPlan> plans;
  if (streams.size() == 1) {
    const int owner = outcomes[streams.front()].rank;
    Bytes message;
    if (owner == communicator.rank())
      message = to_message(here.of(streams.front(), round.qualities[streams.front()]));
    plans.push_back(from_message<TransferPlan>(communicator.broadcast(std::move(message), owner)));
  } else {
    plans = gathered(streams, round.qualities, outcomes, here, communicator);
  }
  for (TransferPlan& plan : plans) drop_useless(plan, task.space);
  round.winner = plans.front();
  round.merged = 1;
  if (plans.size() == 1) return round;
  const std::vector<std::size_t> counts = counts_to_merge(plans.size());
  const auto best = best_of_parts(communicator, counts.size(), [&](std::size_t i) {
    std::optional<TransferPlan> plan = in_time([&] {
      return std::optional(merged(task.incumbent.plan, std::span(plans).first(counts[i]), task.space));
    });
    const PlanQuality quality = plan ? plan->quality : kNothingChanged;
    return std::pair(quality, plan ? *std::move(plan) : TransferPlan{});
  });
  round.tries += counts.size();
  if (!(best.quality < round.winner->quality)) return round;
  round.winner = shared_winner(communicator, best);
  drop_useless(*round.winner, task.space);
  const auto won = std::ranges::find(best.qualities, best.quality) - best.qualities.begin();
  round.merged = counts[static_cast<std::size_t>(won)];
  return round;
}

std::vector<std::uint64_t> better_seeds(const std::vector<std::uint64_t>& seeds,
                                        const std::vector<PlanQuality>& qualities,
                                        const PlanQuality& before) {
  std::vector<std::pair<PlanQuality, std::uint64_t>> better;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (qualities[i] < before) better.emplace_back(qualities[i], seeds[i]);
  }
  std::ranges::sort(better);
  better.resize(std::min(better.size(), kMostBetterSeeds));
  std::vector<std::uint64_t> best;
  for (const auto& [quality, seed] : better) best.push_back(seed);
  return best;
}

}  // namespace rondo
