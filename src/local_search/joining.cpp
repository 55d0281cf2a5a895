#include "rondo/local_search/joining.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "joining_moves.hpp"
#include "rondo/parallel/best_of_parts.hpp"

namespace rondo {
namespace {

constexpr std::size_t kChainsPerRound = 8;
/// Of one chain, so that a round takes a moment.
constexpr double kWorkOfChain = 2e5;
constexpr double kMostTriesOfChain = 2000;
/// The temperature at which a chain of the first round begins, as a part of the finish time.
constexpr double kFirstTemperature = 0.02;
/// Rounds without success after which the search ends.
constexpr std::uint64_t kIdleRoundsOfJoining = 6;
/// What the mean counts beside the finish time.
constexpr double kWorthOfMean = 0.1;

class Joiner {
 public:
  Joiner(const JoiningTask& task, const Communicator& communicator)
      : task_(task),
        communicator_(communicator),
        space_(make_plan_space(task.topology, task.demand, task.concurrency)) {}

  Joining run() {
    Joining found;
    std::optional<JoinedPlan> start = joined_plan_of(task_.start, space_);
    if (!start) return found;
    best_ = std::move(*start);
    join_runs();
    double work = 0;
    const auto tries = std::max(1.0, std::min(kMostTriesOfChain, kWorkOfChain / size()));
    std::uint64_t idle = 0;
    while (idle < kIdleRoundsOfJoining && work < task_.work_limit && !task_.stop(best_.quality.finish_us)) {
      const double temperature =
          kFirstTemperature * best_.quality.finish_us / static_cast<double>(1 + found.rounds % 8);
      auto round = best_of_parts(communicator_, kChainsPerRound, [&](std::size_t chain) {
        Random random(mix_bits(mix_bits(task_.seed + 1) + found.rounds * kChainsPerRound + chain));
        JoinedPlan plan = annealed(temperature, static_cast<std::uint64_t>(tries), random);
        const JoinedQuality quality = plan.quality;
        return std::pair(quality, std::move(plan));
      });
      work += static_cast<double>(kChainsPerRound) * tries * size();
      found.tries += kChainsPerRound * static_cast<std::uint64_t>(tries);
      ++found.rounds;
      ++idle;
      if (round.quality < best_.quality) {
        if (round.quality.finish_us < best_.quality.finish_us) idle = 0;
        best_ = shared_winner(communicator_, round);
      }
      task_.progress(found.rounds, best_.quality.finish_us);
    }
    if (best_.quality.finish_us < task_.start.finish_us) found.schedule = schedule_of(best_, space_);
    return found;
  }

 private:
  double size() const { return static_cast<double>(best_.chunks.size()); }

  /// Joins in one go where that helps.
  void join_runs() {
    JoinedPlacing placing(space_);
    const JoiningMoves moves(space_);
    const JoinedPlan start = best_;
    const auto try_runs = [&](const JoiningMoves::Runs& how) {
      JoinedPlan joined = moves.joined_runs(start, how);
      if (placing.place(joined) && joined.quality < best_.quality) best_ = std::move(joined);
    };
    for (const bool costly : {true, false}) {
      for (const bool waits : {true, false}) {
        for (const double share : {0.5, 0.25, 0.125}) try_runs({start.chunks.size(), share, costly, waits});
        for (std::size_t most = 2; most < 2 * start.chunks.size(); most *= 2)
          try_runs({most, 1, costly, waits});
      }
    }
  }

  static double cost(const JoinedPlan& plan) {
    return plan.quality.finish_us + kWorthOfMean * plan.quality.mean_us;
  }

  JoinedPlan annealed(double temperature, std::uint64_t tries, Random& random) const {
    JoinedPlacing placing(space_);
    JoiningMoves moves(space_);
    JoinedPlan best = best_;
    JoinedPlan now = best_;
    for (std::uint64_t i = 0; i < tries; ++i) {
      JoinedPlan next = moves.neighbour_of(now, random);
      if (!placing.place(next)) continue;
      const double cooled = temperature * (1 - static_cast<double>(i) / static_cast<double>(tries));
      const double worse = cost(next) - cost(now);
      if (worse > 0 && random.unit() >= std::exp(-worse / cooled)) continue;
      now = std::move(next);
      if (now.quality < best.quality) best = now;
    }
    return best;
  }

  const JoiningTask& task_;
  const Communicator& communicator_;
  PlanSpace space_;
  JoinedPlan best_;
};

}  // namespace

Joining join_transfers(const JoiningTask& task, const Communicator& communicator) {
  return Joiner(task, communicator).run();
}

}  // namespace rondo
