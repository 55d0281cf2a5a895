#include "rondo/core/near_groups.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr double kNotJoined = std::numeric_limits<double>::infinity();
/// A member without a hop from the other group gets what comes there from one that has, after this many times
/// the time of the fastest hop at most.
constexpr double kByOthers = 2;

using Group = std::vector<int>;  ///< members, by their numbers

class NearGroups {
 public:
  NearGroups(const HopTable& hops, const std::vector<GpuId>& members, double bytes)
      : count_(members.size()), hop_us_(count_ * count_, kNotJoined) {
    std::vector<int> number(hops.num_gpus(), -1);
    for (std::size_t m = 0; m < count_; ++m) {
      number[members[m].index()] = static_cast<int>(m);
      groups_.push_back({static_cast<int>(m)});
    }
    for (const Hop& hop : hops.hops()) {
      const int from = number[hop.src.index()];
      const int to = number[hop.dst.index()];
      if (from < 0 || to < 0) continue;
      double& us = hop_us_[index(from) * count_ + index(to)];
      us = std::min(us, hop.duration_us(bytes));
    }
  }

  /// Joins groups of `radix` groups each; whether that can be done.
  bool join(int radix) {
    weigh();
    std::vector<Group> joined;
    std::vector<std::size_t> left(groups_.size());
    for (std::size_t g = 0; g < left.size(); ++g) left[g] = g;
    while (!left.empty()) {
      std::optional<std::vector<std::size_t>> together = nearest(left, radix);
      if (!together) return false;
      Group& group = joined.emplace_back();
      std::ranges::sort(*together);
      for (const std::size_t g : *together) group.insert(group.end(), groups_[g].begin(), groups_[g].end());
      std::erase_if(left, [&](std::size_t g) { return std::ranges::binary_search(*together, g); });
    }
    std::ranges::sort(joined);
    groups_ = std::move(joined);
    return true;
  }

  std::vector<int> order() const {
    std::vector<int> order;
    for (const Group& group : groups_) order.insert(order.end(), group.begin(), group.end());
    return order;
  }

 private:
  double apart_us(std::size_t a, std::size_t b) const { return apart_us_[a * groups_.size() + b]; }

  /// Sum over the members of `to`.
  double sum_us(const Group& from, const Group& to) const {
    double fastest = kNotJoined;
    std::vector<double> own;
    for (const int t : to) {
      double us = kNotJoined;
      for (const int f : from) us = std::min(us, hop_us_[index(f) * count_ + index(t)]);
      own.push_back(us);
      fastest = std::min(fastest, us);
    }
    double sum = 0;
    for (const double us : own) sum += std::min(us, kByOthers * fastest);
    return sum;
  }

  void weigh() {
    const std::size_t n = groups_.size();
    apart_us_.assign(n * n, 0);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        apart_us_[a * n + b] = apart_us_[b * n + a] =
            sum_us(groups_[a], groups_[b]) + sum_us(groups_[b], groups_[a]);
      }
    }
  }

  /// Of the groups left, the one with the most to lose by others than its nearest, and those.
  std::optional<std::vector<std::size_t>> nearest(const std::vector<std::size_t>& left, int radix) const {
    std::optional<std::size_t> first;
    double most_to_lose = -1;
    for (const std::size_t g : left) {
      double nearest_us = kNotJoined;
      double next_us = kNotJoined;
      for (const std::size_t other : left) {
        if (other == g || apart_us(g, other) >= next_us) continue;
        next_us = apart_us(g, other);
        if (next_us < nearest_us) std::swap(next_us, nearest_us);
      }
      if (nearest_us == kNotJoined) return std::nullopt;
      if (next_us - nearest_us <= most_to_lose) continue;
      most_to_lose = next_us - nearest_us;
      first = g;
    }
    if (!first) return std::nullopt;
    std::vector<std::size_t> together{*first};
    while (std::ssize(together) < radix) {
      std::optional<std::size_t> next;
      double least_us = kNotJoined;
      for (const std::size_t g : left) {
        if (std::ranges::find(together, g) != together.end()) continue;
        double us = 0;
        for (const std::size_t member : together) us += apart_us(g, member);
        if (us >= least_us) continue;
        least_us = us;
        next = g;
      }
      if (!next) return std::nullopt;
      together.push_back(*next);
    }
    return together;
  }

  std::size_t count_;
  std::vector<double> hop_us_;  ///< fastest one, from * count + to
  std::vector<Group> groups_ = {};
  std::vector<double> apart_us_ = {};  ///< of two groups
};

}  // namespace

std::optional<std::vector<GpuId>> ordered_by_nearness(const HopTable& hops, const std::vector<GpuId>& members,
                                                      const std::vector<int>& radices, double bytes) {
  if (members.size() > kMostOrdered) return std::nullopt;
  NearGroups groups(hops, members, bytes);
  for (const int radix : radices) {
    if (!groups.join(radix)) return std::nullopt;
  }
  std::vector<GpuId> ordered;
  for (const int m : groups.order()) ordered.push_back(members[index(m)]);
  return ordered;
}

}  // namespace rondo
