#include "rondo/local_search/replanting_sums.hpp"

#include <algorithm>
#include <utility>

#include "replanting_chain.hpp"
#include "rondo/core/random.hpp"
#include "rondo/parallel/best_of_parts.hpp"
#include "sum_forest.hpp"

namespace rondo {
namespace {

constexpr std::size_t kChains = 2;
/// Trees that a chain grows, for each that there is, and of all work at least.
constexpr double kGrownPerTree = 1;
constexpr double kLeastShare = 1.0 / 128;
/// Of the finish time, what a round has to gain to be followed by another, once so much work is done.
constexpr double kWorthRound = 1e-3;
constexpr double kShareBeforeWorth = 1.0 / 16;
constexpr ReplantingStyle kFewAtATime{.least_trees = 1, .most_trees = 2, .one_level = true};

}  // namespace

bool may_replant_sums(const Topology& topology, const Demand& demand) {
  const auto is_for_all = [&](const Contribution& c) {
    return c.all_sources().size() == topology.num_gpus() && c.destinations.size() == topology.num_gpus();
  };
  return demand.kind() == DemandKind::all_reduction && !topology.has_message_costs() &&
         !topology.has_bandwidth_steps() && std::ranges::all_of(demand.contributions(), is_for_all);
}

std::optional<Schedule> replanted_sums(const SumReplantingTask& task, const Communicator& communicator) {
  std::optional<SumPlan> plan = sum_plan_of(task.schedule, task.topology, task.demand, task.concurrency);
  if (!plan) return std::nullopt;
  auto& [trees, space] = *plan;
  space.spread.deadline = &task.deadline;
  trees = justified(trees, space);
  const auto num_trees = static_cast<double>(trees.of_chunk.size());
  const double transfers_of_tree = 2 * static_cast<double>(task.topology.num_gpus() - 1);
  const double grown = std::max(kGrownPerTree * num_trees, kLeastShare * task.work_limit / transfers_of_tree);
  // Chains are shorter where growing takes longer; justification places all transfers twice.
  const double work_of_round = kChains * transfers_of_tree * (grown + 2 * num_trees);
  double work = 0;
  bool goes_on = true;
  for (std::uint64_t round = 0; goes_on && work + work_of_round <= task.work_limit; ++round) {
    work += work_of_round;
    if (task.stop(trees.finish_us())) break;
    const auto best = best_of_parts(communicator, kChains, [&](std::size_t chain) {
      SumForest forest(trees, space);
      const std::uint64_t seed = mix_bits(task.seed) + kChains * round + chain;
      ReplantingChain(forest, space.spread, task.bound_us, seed, kFewAtATime)
          .run(share_of_usual_hops(space.spread) * grown);
      SumTrees found = justified(forest.plan(), space);
      return std::pair(found.finish_us(), std::move(found));
    });
    goes_on =
        best.quality < trees.finish_us() * (1 - kWorthRound) || work < kShareBeforeWorth * task.work_limit;
    if (best.quality < trees.finish_us()) trees = shared_winner(communicator, best);
  }
  if (trees.finish_us() >= task.schedule.finish_us) return std::nullopt;
  return schedule_of(trees, space);
}

}  // namespace rondo
