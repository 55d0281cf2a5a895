#include "estimator.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace rondo::tuning {
namespace {

constexpr double kGoodShare = 0.1;         ///< of all trials
constexpr std::size_t kUniformEvery = 10;  ///< of the chosen points
/// Of an ordered parameter's range, and how much an unequal word counts.
constexpr double kWidth = 0.1;
constexpr double kOtherWord = 0.2;
/// Points that are compared; of larger spaces as many are drawn.
constexpr std::size_t kCandidates = 8192;

/// Trials by time, failed ones last; the first `good` of them are good.
struct Split {
  std::vector<const Trial*> trials;
  std::size_t good = 0;
};

Split split_of(const std::vector<Trial>& trials) {
  Split split;
  for (const Trial& trial : trials) split.trials.push_back(&trial);
  std::ranges::sort(split.trials, {}, [](const Trial* trial) {
    return std::tuple(trial->has_failed(), trial->time_us, trial->point);
  });
  const auto alive = static_cast<std::size_t>(
      std::ranges::count_if(trials, [](const Trial& trial) { return !trial.has_failed(); }));
  split.good =
      std::min(alive, static_cast<std::size_t>(std::ceil(kGoodShare * static_cast<double>(alive))) + 1);
  return split;
}

/// How alike two values of a parameter are, 1: equal.
using Likeness = std::vector<std::vector<double>>;

Likeness likeness_of(const Parameter& parameter) {
  const std::size_t n = parameter.values.size();
  Likeness likeness(n, std::vector<double>(n, 1));
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      const double steps = std::abs(static_cast<double>(a) - static_cast<double>(b));
      const double width = std::max(1.0, kWidth * static_cast<double>(n - 1));
      likeness[a][b] = a == b                 ? 1
                       : parameter.is_ordered ? std::exp(-steps * steps / (2 * width * width))
                                              : kOtherWord;
    }
  }
  return likeness;
}

/// The densities of good and bad points at the candidates (TuCCL, equations 2 and 3, which names them the
/// other way round; the means that it multiplies with change no order).
class Densities {
 public:
  Densities(const Space& space, std::vector<std::size_t> candidates) : candidates_(std::move(candidates)) {
    for (const Parameter& parameter : space.parameters()) likeness_.push_back(likeness_of(parameter));
    for (const std::size_t point : candidates_) choices_.push_back(space.choice(point));
    good_.assign(candidates_.size(), 0);
    bad_.assign(candidates_.size(), 0);
  }

  void add(const Choice& observed, bool is_good) {
    (is_good ? num_good_ : num_bad_) += 1;
    std::vector<double>& sums = is_good ? good_ : bad_;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      double product = 1;
      for (std::size_t p = 0; p < observed.size(); ++p) product *= likeness_[p][observed[p]][choices_[i][p]];
      sums[i] += product;
    }
  }

  /// The candidate with the largest ratio of densities.
  std::size_t best(Random& random) {
    constexpr double kPrior = 0.02;  // far from all observations both are alike
    std::size_t best = 0;
    double most = -1;
    std::uint64_t best_rank = 0;
    const std::uint64_t salt = random.next();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (bad_[i] < 0) continue;  // taken
      const double ratio = (good_[i] + kPrior) / num_good_ / ((bad_[i] + kPrior) / num_bad_);
      const std::uint64_t rank = mix_bits(salt ^ candidates_[i]);
      if (ratio > most || (ratio == most && rank < best_rank)) {
        most = ratio;
        best = i;
        best_rank = rank;
      }
    }
    return best;
  }
  std::size_t point(std::size_t i) const { return candidates_[i]; }
  const Choice& choice(std::size_t i) const { return choices_[i]; }
  void remove(std::size_t i) { bad_[i] = -1e300; }
  void remove_point(std::size_t point) {
    const auto found = std::ranges::find(candidates_, point);
    if (found != candidates_.end()) remove(static_cast<std::size_t>(found - candidates_.begin()));
  }

 private:
  std::vector<std::size_t> candidates_;
  std::vector<Choice> choices_;
  std::vector<Likeness> likeness_;
  std::vector<double> good_;
  std::vector<double> bad_;
  double num_good_ = 0;
  double num_bad_ = 0;
};

}  // namespace

std::vector<std::size_t> Estimator::choose(const std::vector<Trial>& trials, std::size_t count,
                                           bool is_informed, Random& random) const {
  std::vector<bool> is_taken(space_.size(), false);
  std::size_t left = space_.size();
  const auto take = [&](std::size_t point) {
    if (!is_taken[point]) --left;
    is_taken[point] = true;
  };
  for (const Trial& trial : trials) take(trial.point);
  count = std::min(count, left);
  const auto draw = [&] {
    while (true) {
      const std::size_t point = random.below(space_.size());
      if (!is_taken[point]) return point;
    }
  };
  is_informed = is_informed && trials.size() > 2 * space_.parameters().size();
  std::vector<std::size_t> chosen;
  if (!is_informed) {
    while (chosen.size() < count) {
      chosen.push_back(draw());
      take(chosen.back());
    }
    return chosen;
  }
  std::vector<std::size_t> candidates;
  for (std::size_t point = 0; point < space_.size(); ++point) {
    if (!is_taken[point]) candidates.push_back(point);
  }
  if (candidates.size() > kCandidates) {
    random.shuffle(std::span(candidates));
    candidates.resize(kCandidates);
  }
  Densities densities(space_, std::move(candidates));
  const Split split = split_of(trials);
  for (std::size_t i = 0; i < split.trials.size(); ++i)
    densities.add(space_.choice(split.trials[i]->point), i < split.good);
  while (chosen.size() < count) {
    if ((trials.size() + chosen.size()) % kUniformEvery == 0) {
      chosen.push_back(draw());
      densities.remove_point(chosen.back());
    } else {
      const std::size_t best = densities.best(random);
      chosen.push_back(densities.point(best));
      // Until it is measured it counts as a bad one, so that the next differs from it.
      densities.add(densities.choice(best), false);
      densities.remove(best);
    }
    take(chosen.back());
  }
  return chosen;
}

std::vector<std::vector<double>> Estimator::good_values(const std::vector<Trial>& trials) const {
  std::vector<std::vector<double>> shares;
  for (const Parameter& parameter : space_.parameters()) shares.emplace_back(parameter.values.size(), 1.0);
  const Split split = split_of(trials);
  for (std::size_t i = 0; i < split.good; ++i) {
    const Choice choice = space_.choice(split.trials[i]->point);
    for (std::size_t p = 0; p < choice.size(); ++p) shares[p][choice[p]] += 1;
  }
  for (std::vector<double>& of_parameter : shares) {
    const double all = static_cast<double>(split.good + of_parameter.size());
    for (double& share : of_parameter) share /= all;
  }
  return shares;
}

double divergence(const std::vector<std::vector<double>>& from, const std::vector<std::vector<double>>& to) {
  double sum = 0;
  for (std::size_t p = 0; p < from.size(); ++p) {
    for (std::size_t v = 0; v < from[p].size(); ++v) sum += from[p][v] * std::log(from[p][v] / to[p][v]);
  }
  return sum;
}

}  // namespace rondo::tuning
