#include "rings.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr double kLeastShare = 1.0 / 8;  ///< of the first ring's bandwidth
constexpr int kMostVisits = 2'500;       ///< of a search from one member on
constexpr int kMostStarts = 8;
constexpr std::size_t kMostChoices = 64;  ///< members that are looked at more closely as next ones
constexpr double kRingRounding = 1e-9;

/// What links and groups have left for further rings.
class Residual {
 public:
  explicit Residual(const Topology& topology) : groups_of_(topology.num_links()) {
    for (const Link& link : topology.links()) left_.push_back(link.bandwidth_GBps);
    for (const SharedBandwidth& group : topology.shared_bandwidth()) {
      for (const LinkId l : group.links) groups_of_[l.index()].push_back(left_.size());
      left_.push_back(group.bandwidth_GBps);
    }
  }

  double least(const Hop& hop) const {
    double least = std::numeric_limits<double>::infinity();
    for (const HopLink& part : hop.links) {
      least = std::min(least, left_[part.link.index()]);
      for (const std::size_t group : groups_of_[part.link.index()]) least = std::min(least, left_[group]);
    }
    return least;
  }
  void take(const Hop& hop, double GBps) {
    for (const HopLink& part : hop.links) {
      left_[part.link.index()] -= GBps;
      for (const std::size_t group : groups_of_[part.link.index()]) left_[group] -= GBps;
    }
  }

 private:
  std::vector<double> left_;  ///< links, then groups
  std::vector<std::vector<std::size_t>> groups_of_;
};

/// Depth-first for a ring of a given bandwidth.
class RingSearch {
 public:
  RingSearch(const Topology& topology, const HopTable& hops, const std::vector<GpuId>& members,
             Residual& residual)
      : topology_(topology), hops_(hops), members_(members), residual_(residual) {
    position_.assign(topology.num_gpus(), -1);
    for (std::size_t m = 0; m < members.size(); ++m) position_[members[m].index()] = static_cast<int>(m);
  }

  /// From `start` on, empty where none is found; `GBps` is taken on it then.
  Ring find(int start, double GBps) {
    GBps_ = GBps;
    start_ = start;
    visits_ = 0;
    for (const auto& [last, closing] : before(start)) {
      residual_.take(hops_.hop(closing), GBps_);
      visited_.assign(members_.size(), 0);
      ring_ = {.GBps = GBps};
      last_ = last;
      if (extend(start)) {
        ring_.hops.push_back(closing);
        return ring_;
      }
      residual_.take(hops_.hop(closing), -GBps_);
      if (visits_ >= kMostVisits) break;
    }
    return {};
  }

 private:
  struct Next {
    int member;
    int hop;
  };

  bool has_room(int h) const { return residual_.least(hops_.hop(h)) >= GBps_ * (1 - kRingRounding); }
  int after_start(int member) const {
    const auto count = static_cast<int>(members_.size());
    return (member - start_ + count) % count;
  }
  auto chassis(int member) const {
    return topology_.node(topology_.node_of(members_[index(member)])).chassis;
  }

  /// Who may come before the start, the farthest by number first.
  std::vector<Next> before(int start) const {
    std::vector<Next> ways;
    for (const int h : hops_.into(members_[index(start)])) {
      const int member = position_[hops_.hop(h).src.index()];
      if (member >= 0 && has_room(h) && !known(ways, member)) ways.push_back({member, h});
    }
    const auto home = chassis(start);
    std::ranges::stable_sort(ways, {}, [&](const Next& n) {
      return std::pair(chassis(n.member) != home, -after_start(n.member));
    });
    return ways;
  }

  /// Who may come next: one of the chassis first, then one that has the fewest others to go on to.
  std::vector<Next> after(int member) const {
    std::vector<Next> ways;
    for (const int h : hops_.out_of(members_[index(member)])) {
      const int next = position_[hops_.hop(h).dst.index()];
      if (next < 0 || visited_[index(next)] != 0 || !has_room(h) || known(ways, next)) continue;
      if (next == last_ && ring_.order.size() + 1 < members_.size()) continue;
      ways.push_back({next, h});
    }
    const auto home = chassis(member);
    std::vector<std::tuple<bool, int, int, std::size_t>> order;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const int onward = ways.size() <= kMostChoices ? choices(ways[w].member) : 0;
      order.emplace_back(chassis(ways[w].member) != home, onward, after_start(ways[w].member), w);
    }
    std::ranges::sort(order);
    std::vector<Next> sorted;
    for (const auto& place : order) sorted.push_back(ways[std::get<3>(place)]);
    return sorted;
  }
  static bool known(const std::vector<Next>& ways, int member) {
    return std::ranges::any_of(ways, [&](const Next& n) { return n.member == member; });
  }
  int choices(int member) const {
    int count = 0;
    for (const int h : hops_.out_of(members_[index(member)])) {
      const int next = position_[hops_.hop(h).dst.index()];
      count += next >= 0 && visited_[index(next)] == 0 && has_room(h) ? 1 : 0;
    }
    return count;
  }

  bool extend(int member) {
    ring_.order.push_back(member);
    visited_[index(member)] = 1;
    if (ring_.order.size() == members_.size()) return true;
    if (++visits_ < kMostVisits) {
      for (const Next& next : after(member)) {
        residual_.take(hops_.hop(next.hop), GBps_);
        ring_.hops.push_back(next.hop);
        if (extend(next.member)) return true;
        ring_.hops.pop_back();
        residual_.take(hops_.hop(next.hop), -GBps_);
        if (visits_ >= kMostVisits) break;
      }
    }
    ring_.order.pop_back();
    visited_[index(member)] = 0;
    return false;
  }

  const Topology& topology_;
  const HopTable& hops_;
  const std::vector<GpuId>& members_;
  Residual& residual_;
  std::vector<int> position_;  ///< per GPU; -1: no member
  double GBps_ = 0;
  int start_ = 0;
  int last_ = 0;
  int visits_ = 0;
  std::vector<char> visited_;
  Ring ring_;
};

/// Bandwidths that hops between members have left, greatest first.
std::vector<double> bandwidths(const HopTable& hops, const Residual& residual) {
  std::vector<double> left;
  for (const Hop& hop : hops.hops()) left.push_back(residual.least(hop));
  std::ranges::sort(left, std::greater<>{});
  const auto same = [](double a, double b) { return b >= a * (1 - kRingRounding); };
  left.erase(std::unique(left.begin(), left.end(), same), left.end());
  return left;
}

}  // namespace

std::vector<Ring> find_rings(const Topology& topology, const HopTable& hops,
                             const std::vector<GpuId>& members, std::size_t most) {
  Residual residual(topology);
  RingSearch search(topology, hops, members, residual);
  const auto count = static_cast<int>(members.size());
  std::vector<Ring> rings;
  while (rings.size() < most) {
    const std::size_t before = rings.size();
    for (const double GBps : bandwidths(hops, residual)) {
      if (GBps <= 0 || (!rings.empty() && GBps < kLeastShare * rings.front().GBps)) break;
      Ring ring;
      for (int i = 0; i < std::min(kMostStarts, count) && ring.order.empty(); ++i)
        ring = search.find((static_cast<int>(before) + i) % count, GBps);
      if (ring.order.empty()) continue;
      rings.push_back(std::move(ring));
      break;
    }
    if (rings.size() == before) break;
  }
  return rings;
}

}  // namespace rondo
