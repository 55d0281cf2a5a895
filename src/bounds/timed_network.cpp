#include "timed_network.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "rondo/core/hop_timing.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Shortest augmenting paths from a root, from which arcs lead to the holders, to one node.
class RepeatedFlow {
 public:
  RepeatedFlow(const TimedNetwork& network, const std::vector<const Supply*>& supplies, NodeId target,
               std::size_t& work)
      : nodes_(network.topology->num_nodes()), target_(target.index()), work_(work) {
    arcs_of_.resize(nodes_ + 1);
    potential_.assign(nodes_ + 1, 0);
    const auto& links = network.topology->links();
    arcs_.reserve(2 * (links.size() + nodes_));
    for (std::size_t l = 0; l < links.size(); ++l)
      add(links[l].src.index(), links[l].dst.index(), network.delay_us[l], network.bytes_per_us[l]);
    std::vector<double> ready(nodes_, kNever);
    for (const Supply* supply : supplies) {
      bytes_ += supply->bytes;
      for (const auto& [node, us] : supply->holders) ready[node.index()] = std::min(ready[node.index()], us);
    }
    for (std::size_t n = 0; n < nodes_; ++n) {
      if (ready[n] < kNever) add(root(), n, ready[n], kNever);
    }
  }

  /// Augments as long as that makes the bytes arrive earlier and paths are shorter than `most_us`.
  void run(double most_us) {
    while (true) {
      search(kNever);
      const double farther = distance_[target_];
      if (!(potential_[target_] + farther < std::min(most_us, finish_us()))) return;
      for (std::size_t n = 0; n <= nodes_; ++n) potential_[n] += std::min(distance_[n], farther);
      augment();
    }
  }

  double finish_us() const { return rate_ > 0 ? (bytes_ + spent_) / rate_ : kNever; }

  /// Distances in the residual network with an arc of length `us` from the root to the target.
  std::vector<double> opening_times(double us) {
    search(us);
    std::vector<double> alpha;
    for (std::size_t n = 0; n < nodes_; ++n) {
      const double time = distance_[n] + potential_[n];
      alpha.push_back(time < us ? std::max(time, 0.0) : us);
    }
    return alpha;
  }

 private:
  struct ResidualArc {
    std::size_t to;
    double delay_us;
    double left;  ///< bytes a us
  };

  std::size_t root() const { return nodes_; }

  /// And its reverse, at the next index.
  void add(std::size_t from, std::size_t to, double delay_us, double bytes_per_us) {
    arcs_of_[from].push_back(arcs_.size());
    arcs_.push_back({to, delay_us, bytes_per_us});
    arcs_of_[to].push_back(arcs_.size());
    arcs_.push_back({from, -delay_us, 0});
  }

  /// Dijkstra with lengths reduced by the potentials, of which the root's stays 0; also along an arc from the
  /// root to the target of length `direct_us`, without which it ends at the target.
  void search(double direct_us) {
    distance_.assign(nodes_ + 1, kNever);
    arc_to_.assign(nodes_ + 1, arcs_.size());
    using Entry = std::pair<double, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](std::size_t n, double distance) {
      if (distance >= distance_[n]) return false;
      distance_[n] = distance;
      queue.emplace(distance, n);
      return true;
    };
    reach(root(), 0);
    if (direct_us < kNever) reach(target_, std::max(0.0, direct_us - potential_[target_]));
    while (!queue.empty()) {
      const auto [distance, n] = queue.top();
      queue.pop();
      if (distance > distance_[n]) continue;
      if (n == target_ && direct_us == kNever) break;
      work_ += arcs_of_[n].size();
      for (const std::size_t a : arcs_of_[n]) {
        const ResidualArc& arc = arcs_[a];
        if (!(arc.left > 0)) continue;
        // Not negative but for rounding.
        const double length = std::max(0.0, arc.delay_us + potential_[n] - potential_[arc.to]);
        if (reach(arc.to, distance + length)) arc_to_[arc.to] = a;
      }
    }
  }

  void augment() {
    double rate = kNever;
    double length = 0;
    for (std::size_t n = target_; n != root(); n = arcs_[arc_to_[n] ^ 1U].to) {
      rate = std::min(rate, arcs_[arc_to_[n]].left);
      length += arcs_[arc_to_[n]].delay_us;
    }
    for (std::size_t n = target_; n != root(); n = arcs_[arc_to_[n] ^ 1U].to) {
      arcs_[arc_to_[n]].left -= rate;
      arcs_[arc_to_[n] ^ 1U].left += rate;
    }
    rate_ += rate;
    spent_ += rate * length;
  }

  std::size_t nodes_;
  std::size_t target_;
  std::size_t& work_;
  std::vector<ResidualArc> arcs_ = {};
  std::vector<std::vector<std::size_t>> arcs_of_ = {};
  std::vector<double> potential_ = {};
  std::vector<double> distance_ = {};
  std::vector<std::size_t> arc_to_ = {};
  double bytes_ = 0;
  double rate_ = 0;
  double spent_ = 0;  ///< rate times length of the paths
};

}  // namespace

TimedNetwork::TimedNetwork(const Topology& of) : topology(&of) {
  for (const Link& link : of.links()) {
    delay_us.push_back(link.latency_us + of.message_us_at_start(link));
    bytes_per_us.push_back(link.bandwidth_GBps * kBytesPerUsPerGBps);
    if (!link.bandwidth_steps.empty()) is_exact = false;
  }
  // The tightest first, in whatever order they stand.
  std::vector<std::pair<double, const SharedBandwidth*>> order;
  for (const SharedBandwidth& group : of.shared_bandwidth()) {
    double together = 0;
    for (const LinkId l : group.links) together += bytes_per_us[l.index()];
    order.emplace_back(group.bandwidth_GBps * kBytesPerUsPerGBps / together, &group);
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->links) < std::tie(b.first, b.second->links);
  });
  for (const auto& [share_at_first, group] : order) {
    double together = 0;
    for (const LinkId l : group->links) together += bytes_per_us[l.index()];
    const double share = group->bandwidth_GBps * kBytesPerUsPerGBps / together;
    if (share >= 1) continue;
    is_exact = false;
    for (const LinkId l : group->links) bytes_per_us[l.index()] *= share;
  }
}

TimedNetwork::TimedNetwork(const Topology& of, const std::vector<TimedSource>& sources) : TimedNetwork(of) {
  const std::vector<std::vector<double>> times_us = contribution_times(of, sources);
  is_exact = false;
  for (const Link& link : of.links()) {
    std::vector<double>& from_us = counted_from_us.emplace_back(times_us[link.src.index()]);
    for (double& us : from_us) us += of.message_us_at_start(link);
  }
}

double TimedNetwork::carried(std::size_t link, double from_us, double until_us) const {
  if (counted_from_us.empty()) {
    const Link& of = topology->links()[link];
    return of.bandwidth_steps.empty() ? bytes_per_us[link] * (until_us - from_us)
                                      : passing_bytes(of, from_us, until_us);
  }
  double counted_us = 0;
  for (const double us : counted_from_us[link]) {
    if (us >= until_us) break;
    counted_us += until_us - std::max(us, from_us);
  }
  return bytes_per_us[link] * counted_us;
}

QuickestFlow quickest_flow(const TimedNetwork& network, const std::vector<const Supply*>& supplies,
                           NodeId target, std::size_t& work) {
  RepeatedFlow flow(network, supplies, target, work);
  flow.run(kNever);
  const double us = flow.finish_us();
  if (us == kNever) return {};
  return {us, flow.opening_times(us)};
}

QuickestFlow narrowest_time_cut(const TimedNetwork& network, const std::vector<const Supply*>& supplies,
                                NodeId target, double us, std::size_t& work) {
  RepeatedFlow flow(network, supplies, target, work);
  flow.run(us);
  return {us, flow.opening_times(us)};
}

}  // namespace rondo
