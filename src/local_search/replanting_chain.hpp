#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rondo/core/random.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/local_search/transfer_plan.hpp"
#include "selection.hpp"

namespace rondo {

/// Per link, the least time of the hops over it but for the bytes.
inline std::vector<double> least_hops_us(const PlanSpace& space) {
  std::vector<double> least_us(space.topology->num_links(), std::numeric_limits<double>::infinity());
  for (const Hop& hop : space.hops) {
    for (const HopLink& part : hop.links)
      least_us[part.link.index()] = std::min(least_us[part.link.index()], hop.fixed_us);
  }
  return least_us;
}

/// Of the length of chains: they are shorter where growing a tree looks at more hops into its GPUs.
inline double share_of_usual_hops(const PlanSpace& space) {
  constexpr double kUsualHops = 32;
  const double hops = static_cast<double>(space.hops.size()) / static_cast<double>(space.into.size());
  return std::min(1.0, kUsualHops / hops);
}

inline bool is_time_over(const PlanSpace& space) {
  return space.deadline != nullptr && space.deadline->is_over();
}

/// What a step takes out, and how that grows anew.
struct ReplantingStyle {
  std::size_t least_trees = 2;
  std::size_t most_trees = 4;
  /// At a price for links drawn at random; else at lower and lower ones until a tree is in time.
  bool one_level = false;
};

/// Ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, Journal of Computational Physics 159,
/// 2000) with trees: a chain of steps, each of which takes out the trees of a few chunks, late ones among
/// them, and grows each anew, the cheapest that is in time: links cost the more the fuller they are, of the
/// time that leaves enough for their hops, beside the fullest. A step is kept where the chunks are less late
/// in sum; the target moves on when none is. `Trees` is Forest, or has its functions.
template <class Trees>
class ReplantingChain {
 public:
  ReplantingChain(Trees& forest, const PlanSpace& space, double bound_us, std::uint64_t seed,
                  const ReplantingStyle& style = {})
      : space_(space),
        style_(style),
        random_(mix_bits(seed)),
        forest_(forest),
        level_(forest_.num_trees(), 0),
        hop_us_(least_hops_us(space)),
        step_us_((forest_.latest_us() - bound_us) * power_of_two(random_, -6, -2)) {
    set_target();
  }

  using Plan = decltype(std::declval<const Trees&>().plan());
  /// The plan that met the last target of all, if any. Ends once so many trees have grown, or that has taken
  /// what so many usually do at most, or the deadline of the space is over.
  std::optional<Plan> run(double most_grown) {
    std::optional<Plan> best;
    double lateness = goal();
    most_looks_ = kUsualLooks * most_grown * static_cast<double>(space_.into.size() - 1);
    while (static_cast<double>(grown_) < most_grown && !took_long() && !is_time_over(space_)) {
      if (late_.empty()) {
        if (grown_ > 0) best = forest_.plan();
        set_target();
        for (int& level : level_) level = std::max(0, level - 1);
        lateness = goal();
        if (late_.empty()) break;  // on the bound
      }
      set_prices();
      const std::vector<std::size_t> chosen = choose();
      std::vector<std::pair<typename Trees::Tree, int>> before;
      for (const std::size_t chunk : chosen) before.emplace_back(forest_.take_out(chunk), level_[chunk]);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        forest_.vary(chosen[i], before[i].first, target_us_, random_);
        grow(chosen[i]);
      }
      const double now = goal();
      if (now <= lateness) {
        lateness = now;
        continue;
      }
      for (const std::size_t chunk : chosen) forest_.take_out(chunk);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        forest_.put_back(chosen[i], std::move(before[i].first));
        level_[chosen[i]] = before[i].second;
      }
      goal();  // for its list
    }
    return best;
  }
  /// Whether run() ended because trees took longer than usual to grow: links are full, and of many hops each
  /// finds room but late.
  bool took_long() const { return static_cast<double>(forest_.looks()) >= most_looks_; }

 private:
  /// A us of a link that is occupied all the time costs at most this many us of delay; trees are tried from
  /// there on, each time at half as much, kLevels times, until one is in time.
  static constexpr double kDearest = 300;
  static constexpr int kLevels = 10;
  /// Looks at links that a transfer of a growing tree takes, on most fabrics at most.
  static constexpr double kUsualLooks = 100;
  static constexpr double kExponent = 8;
  /// Loads above 1 are those of a plan that cannot end by the target.
  static constexpr double kMostLoad = 1.2;
  /// Least time in which a link may be of use, as a share of the target.
  static constexpr double kLeastUse = 0.01;
  /// How much full links count beside a us that a chunk is late.
  static constexpr double kPressure = 0.02;
  /// Of the trees that a step takes out, how many are late at most.
  static constexpr std::size_t kMostLate = 3;

  void set_target() {
    target_us_ = forest_.latest_us() - step_us_;
    fullest_ = 0;
    for (std::size_t l = 0; l < hop_us_.size(); ++l) fullest_ = std::max(fullest_, fullness(l));
    fullest_ = std::min(fullest_, 1.0);
  }
  /// The load of a link as a share of the time in which it is of use: what starts later than its hops take
  /// is not there by the target.
  double fullness(std::size_t l) const {
    return forest_.load_us()[l] / std::max(target_us_ - hop_us_[l], kLeastUse * target_us_);
  }
  /// How late the chunks are in sum, and how full links are. Lists those that are late.
  double goal() {
    late_.clear();
    double sum = 0;
    for (std::size_t c = 0; c < forest_.num_trees(); ++c) {
      const double late_us = forest_.late_us(c, target_us_);
      if (late_us <= time_slack_us(target_us_)) continue;
      late_.push_back(c);
      sum += late_us;
    }
    for (const double load_us : forest_.load_us())
      sum += kPressure * std::pow(load_us / target_us_, kExponent);
    return sum;
  }
  /// The fullest link costs a us for a us even where latency leaves no link full: it is what others wait for.
  void set_prices() {
    std::vector<double> price(hop_us_.size(), 0);
    if (fullest_ > 0) {
      for (std::size_t l = 0; l < price.size(); ++l)
        price[l] = std::pow(std::min(fullness(l) / fullest_, kMostLoad), kExponent);
    }
    forest_.set_prices(std::move(price));
  }
  std::vector<std::size_t> choose() {
    const std::size_t count = std::min(
        forest_.num_trees(), style_.least_trees + random_.below(style_.most_trees - style_.least_trees + 1));
    std::vector<std::size_t> chosen;
    const auto add = [&](std::size_t chunk) {
      if (std::ranges::find(chosen, chunk) == chosen.end()) chosen.push_back(chunk);
    };
    for (std::size_t n = 1 + random_.below(std::min(kMostLate, style_.most_trees)); n > 0; --n)
      add(late_[random_.below(late_.size())]);
    while (chosen.size() < count) add(random_.below(forest_.num_trees()));
    random_.shuffle(std::span(chosen));
    if (one_in(random_, 2)) {
      std::ranges::stable_sort(chosen, std::ranges::greater{},
                               [&](std::size_t c) { return forest_.ends_us(c); });
    }
    return chosen;
  }
  /// The cheapest tree in time, or the one with the least sum of delay and price.
  void grow(std::size_t chunk) {
    if (style_.one_level) return grow_at(chunk, static_cast<int>(random_.below(kLevels)));
    const int first = std::max(0, level_[chunk] - 1 - static_cast<int>(random_.below(2)));
    double least = 0;
    int best = -1;
    for (int level = first; level < kLevels; ++level) {
      grow_at(chunk, level);
      const double late_us = forest_.late_us(chunk, target_us_);
      if (late_us <= time_slack_us(target_us_)) return;
      const double cost = late_us + forest_.price_of(chunk);
      if (best < 0 || cost < least) {
        least = cost;
        best = level;
      }
      if (level + 1 < kLevels) forest_.take_out(chunk);
    }
    if (best == kLevels - 1) return;
    forest_.take_out(chunk);
    grow_at(chunk, best);
  }
  void grow_at(std::size_t chunk, int level) {
    level_[chunk] = level;
    forest_.grow(chunk, std::ldexp(kDearest, -level));
    ++grown_;
  }

  const PlanSpace& space_;
  ReplantingStyle style_;
  Random random_;
  Trees& forest_;
  std::vector<int> level_;      ///< per chunk: at which its tree was grown
  std::vector<double> hop_us_;  ///< per link
  double step_us_;
  double target_us_ = 0;
  double fullest_ = 0;             ///< of the links when the target was set, at most 1
  std::vector<std::size_t> late_;  ///< chunks
  std::size_t grown_ = 0;
  double most_looks_ = 0;
};

}  // namespace rondo
