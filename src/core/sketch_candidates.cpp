#include "rondo/core/sketch_candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "rondo/core/index.hpp"
#include "rondo/core/make_set.hpp"

namespace rondo {
namespace {

using Connections = std::map<int, std::vector<int>>;

bool has(const std::vector<int>& places, int place) {
  return std::ranges::find(places, place) != places.end();
}

/// How a GPU leaves its node.
struct WayOut {
  double us = 0;                  ///< to the nearest GPU of another node
  double GBps = 0;                ///< of the narrowest link on the way there
  LinkId nic;                     ///< by which it leaves the node
  std::vector<int> reached = {};  ///< places of GPUs in other nodes, the nearest first, each once
};

/// Of a fabric of equal nodes: GPUs by node and place.
class Candidates {
 public:
  Candidates(const Topology& topology, std::vector<std::vector<GpuId>> gpus)
      : topology_(topology), gpus_(std::move(gpus)) {
    for (const auto& node : gpus_) {
      for (std::size_t i = 0; i < node.size(); ++i) place_[node[i]] = static_cast<int>(i);
    }
    for (const GpuId gpu : gpus_.front()) {
      WayOut out = way_out(gpu);
      if (!out.reached.empty()) ways_[place_.at(gpu)] = std::move(out);
    }
  }

  std::vector<SketchCandidate> make() {
    for (const auto& [place, out] : ways_)
      receiver_[place] = has(out.reached, place) ? place : out.reached.front();
    const std::vector<int> nearest = nearest_to_nics();
    for (std::size_t count = 1; count <= nearest.size(); count = next_count(count, nearest.size()))
      offer_of(chosen(nearest, count), count);
    Connections all;
    for (const auto& [place, receiver] : receiver_) all[place] = {receiver};
    if (!all.empty()) offer("all GPUs, own group", std::move(all));
    return std::move(found_);
  }

 private:
  std::optional<int> chassis(NodeId n) const { return topology_.node(n).chassis; }

  /// Dijkstra over switches.
  WayOut way_out(GpuId gpu) const {
    struct Label {
      double us;
      int number;  ///< first come, first served among equals
      NodeId at;
      double GBps;
      LinkId nic;
      bool operator>(const Label& other) const {
        return std::tie(us, number) > std::tie(other.us, other.number);
      }
    };
    const NodeId home = topology_.node_of(gpu);
    std::priority_queue<Label, std::vector<Label>, std::greater<>> open;
    std::set<NodeId> seen;
    open.push({0, 0, home, std::numeric_limits<double>::infinity(), LinkId{}});
    WayOut out;
    for (int number = 0; !open.empty();) {
      const Label label = open.top();
      open.pop();
      if (!seen.insert(label.at).second) continue;
      if (topology_.is_gpu(label.at) && label.at != home) {
        if (chassis(label.at) == chassis(home)) continue;
        if (out.reached.empty())
          std::tie(out.us, out.GBps, out.nic) = std::tie(label.us, label.GBps, label.nic);
        const int place = place_.at(topology_.gpu_of(label.at));
        if (!has(out.reached, place)) out.reached.push_back(place);
        continue;
      }
      for (const LinkId l : topology_.out_links(label.at)) {
        const Link& link = topology_.link(l);
        const bool leaves = chassis(link.dst) != chassis(home);
        open.push({label.us + link.latency_us, ++number, link.dst, std::min(label.GBps, link.bandwidth_GBps),
                   label.nic.valid() || !leaves ? label.nic : l});
      }
    }
    return out;
  }

  /// Of each NIC the GPU that is next to it: by latency, then by bandwidth. By place.
  std::vector<int> nearest_to_nics() const {
    std::map<LinkId, std::tuple<double, double, int>> best;
    for (const auto& [place, out] : ways_) {
      const std::tuple mine(out.us, -out.GBps, place);
      const auto [at, is_new] = best.try_emplace(out.nic, mine);
      if (!is_new) at->second = std::min(at->second, mine);
    }
    std::vector<int> places;
    for (const auto& [nic, user] : best) places.push_back(std::get<int>(user));
    std::ranges::sort(places);
    return places;
  }

  /// The widest, and those that differ least from them; evenly spread among equals.
  std::vector<int> chosen(const std::vector<int>& nearest, std::size_t count) const {
    const auto width = [&](int place) { return ways_.at(place).GBps; };
    std::vector<int> order = nearest;
    std::ranges::stable_sort(order, std::greater<>(), width);
    std::vector<int> alike;
    for (const int place : order) {
      if (width(place) == width(order.front())) alike.push_back(place);
    }
    if (alike.size() < count) return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)};
    std::ranges::sort(alike);
    std::vector<int> spread;
    for (std::size_t i = 0; i < count; ++i) spread.push_back(alike[i * (alike.size() / count)]);
    return spread;
  }

  static std::size_t next_count(std::size_t count, std::size_t all) {
    return count < all ? std::min(2 * count, all) : all + 1;
  }

  void offer_of(const std::vector<int>& senders, std::size_t count) {
    const std::string name = fmt::format("{} NIC{}, ", count, count > 1 ? "s" : "");
    Connections own, next, all;
    for (std::size_t i = 0; i < senders.size(); ++i) {
      own[senders[i]] = {receiver_.at(senders[i])};
      next[senders[i]] = {receiver_.at(senders[(i + 1) % senders.size()])};
      for (const int other : senders) all[senders[i]].push_back(receiver_.at(other));
    }
    offer(name + "own group", std::move(own));
    offer(name + "next group", std::move(next));
    offer(name + "all to all", std::move(all));
    if (count > 1) return;
    // As TACCL does on an NDv2.
    const auto other = std::ranges::find_if(ways_, [&](const auto& way) { return way.first != senders[0]; });
    if (other != ways_.end()) offer(name + "one sends, one receives", {{senders[0], {other->first}}});
  }

  void offer(std::string name, Connections conn) {
    for (auto& [sender, receivers] : conn) {
      make_set(receivers);
      for (const int r : receivers) {
        if (!has(ways_.at(sender).reached, r)) return;
      }
    }
    for (const SketchCandidate& other : found_) {
      if (other.sketch.conn == conn) return;
    }
    Sketch sketch{.nodes = static_cast<int>(gpus_.size())};
    sketch.conn = std::move(conn);
    found_.push_back({std::move(name), std::move(sketch)});
  }

  const Topology& topology_;
  std::vector<std::vector<GpuId>> gpus_;
  std::map<GpuId, int> place_;
  std::map<int, WayOut> ways_;  ///< of the first node, by place
  std::map<int, int> receiver_;
  std::vector<SketchCandidate> found_;
};

}  // namespace

std::vector<SketchCandidate> sketch_candidates(const Topology& topology) {
  std::map<std::optional<int>, std::vector<GpuId>> by_chassis;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g)
    by_chassis[topology.node(topology.node_of(GpuId(g))).chassis].emplace_back(g);
  const std::size_t of_a_node = by_chassis.begin()->second.size();
  const bool are_equal =
      std::ranges::all_of(by_chassis, [&](const auto& node) { return node.second.size() == of_a_node; });
  if (by_chassis.size() < 2 || !are_equal || by_chassis.contains(std::nullopt)) return {};
  std::vector<std::vector<GpuId>> gpus;
  for (auto& [chassis, members] : by_chassis) gpus.push_back(std::move(members));
  return Candidates(topology, std::move(gpus)).make();
}

}  // namespace rondo
