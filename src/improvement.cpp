#include "improvement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "rondo/core/random.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

constexpr std::size_t kTriesPerRound = 16;
constexpr int kIdleRounds = 24;
/// The share of the schedule that is freed, halved from one level to the next.
constexpr std::size_t kLevels = 7;
constexpr double kWidest = 0.9;

/// Smaller is better.
struct Quality {
  double finish_us = std::numeric_limits<double>::infinity();
  double mean_done_us = std::numeric_limits<double>::infinity();  ///< over GPUs, of their last arrival
  friend auto operator<=>(const Quality&, const Quality&) = default;
};

Quality quality_of(const Schedule& schedule, const Topology& topology) {
  std::vector<double> done(topology.num_gpus(), 0);
  for (const Send& send : schedule.sends) {
    const NodeId to = topology.link(send.link).dst;
    if (!topology.is_gpu(to)) continue;
    double& latest = done[topology.gpu_of(to).index()];
    latest = std::max(latest, send.arrival_us);
  }
  double sum = 0;
  for (const double t : done) sum += t;
  return {schedule.finish_us, sum / static_cast<double>(done.size())};
}

/// One neighbour of the incumbent.
struct Try {
  std::size_t level = 0;
  double from_us = 0;
  std::string policy;
  std::uint64_t seed = 0;
};

class Improver {
 public:
  Improver(const ImprovementTask& task, std::vector<Move> incumbent, double finish_us,
           const Communicator& communicator)
      : task_(task), communicator_(communicator), random_(mix_bits(task.options.seed + 1)) {
    best_.moves = std::move(incumbent);
    best_.finish_us = finish_us;
    quality_.finish_us = finish_us;
  }

  Improvement run() {
    double work = 0;
    if (kTriesPerRound * task_.work_per_schedule > task_.work_limit) return std::move(best_);
    for (int idle = 0; idle < kIdleRounds && !task_.stop(best_.finish_us);) {
      if (work >= task_.work_limit) {
        best_.out_of_work = true;
        break;
      }
      const std::vector<Try> tries = draw();
      idle = play(tries) ? 0 : idle + 1;
      for (const Try& t : tries) work += work_of(t);
    }
    return std::move(best_);
  }

 private:
  std::vector<Try> draw() {
    std::vector<Try> tries;
    double sum = 0;
    for (const double credit : credit_) sum += credit;
    while (tries.size() < kTriesPerRound) {
      Try t;
      for (double mark = random_.unit() * sum; t.level + 1 < kLevels && mark >= credit_[t.level]; ++t.level)
        mark -= credit_[t.level];
      const double share = kWidest * std::exp2(-static_cast<double>(t.level) - random_.unit());
      t.from_us = best_.finish_us * (1 - share);
      t.policy = task_.policies[random_.below(task_.policies.size())];
      t.seed = random_.next();
      tries.push_back(std::move(t));
    }
    return tries;
  }

  /// Keeping costs about a quarter of deciding.
  double work_of(const Try& t) const {
    return task_.work_per_schedule * (1 - 0.75 * t.from_us / best_.finish_us);
  }

  EngineResult result_of(const Try& t) const {
    EngineOptions options = task_.options;
    options.policy = t.policy;
    options.seed = t.seed;
    const auto end =
        std::ranges::partition_point(best_.moves, [&](const Move& m) { return m.start_us < t.from_us; });
    options.kept = {{best_.moves.begin(), end}, t.from_us};
    return task_.engine(task_.demand, options);
  }

  bool play(const std::vector<Try>& tries) {
    std::vector<double> work;
    for (const Try& t : tries) work.push_back(work_of(t));
    Quality my_quality;
    std::size_t my_try = tries.size();
    std::vector<Move> my_moves;
    const auto outcomes = map_parts(communicator_, work, [&](std::size_t i) {
      EngineResult result = result_of(tries[i]);
      const Quality quality = quality_of(*result.schedule, task_.topology);
      if (std::tie(quality, i) < std::tie(my_quality, my_try)) {
        my_quality = quality;
        my_try = i;
        my_moves = std::move(result.moves);
      }
      MessageWriter message;
      message.put(quality);
      return message.take();
    });
    Quality winner;
    std::size_t won = tries.size();
    for (std::size_t i = 0; i < tries.size(); ++i) {
      if (outcomes[i].error) throw *outcomes[i].error;
      const auto quality = MessageReader(outcomes[i].value).get<Quality>();
      double& credit = credit_[tries[i].level];
      credit = std::max(kLeastCredit, credit * (quality < quality_ ? 1.5 : 0.97));
      if (quality < winner) {
        winner = quality;
        won = i;
      }
    }
    best_.tries += tries.size();
    if (!(winner < quality_)) return false;
    ++best_.successes;
    quality_ = winner;
    best_.finish_us = winner.finish_us;
    MessageWriter message;
    if (communicator_.rank() == outcomes[won].rank) message.put_all(my_moves);
    best_.moves = MessageReader(communicator_.broadcast(message.take(), outcomes[won].rank))
                      .get_all<std::vector<Move>>();
    return true;
  }

  static constexpr double kLeastCredit = 0.05;

  const ImprovementTask& task_;
  const Communicator& communicator_;
  Random random_;
  Improvement best_;
  Quality quality_;
  std::array<double, kLevels> credit_ = {1, 1, 1, 1, 1, 1, 1};
};

}  // namespace

Improvement improve(const ImprovementTask& task, std::vector<Move> incumbent, double finish_us,
                    const Communicator& communicator) {
  return Improver(task, std::move(incumbent), finish_us, communicator).run();
}

}  // namespace rondo
