#pragma once

#include <algorithm>

#include "by_hand.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/graph/digraph.hpp"

/// Maximum flows through small networks unrolled over quarters of microseconds, which know nothing of
/// certificates. Latencies, message costs and ready times are whole microseconds. So nothing serves a GPU
/// within the last infeasible horizon, and within the least feasible one some fluid flow does, which no time
/// cut can be later than.
namespace rondo {

/// What is asked, in whole microseconds and kilobytes; where backwards sums, else data.
struct Case {
  Topology topology;
  Demand demand;
  bool backwards = false;
};

inline constexpr int kSteps = 4;  ///< in a microsecond

inline int steps(double us) {
  return static_cast<int>(us * kSteps);
}

/// The network over `horizon` steps towards one GPU (backwards: from it, every link turned round).
class Unrolled {
 public:
  Unrolled(const Case& asked, GpuId gpu, int horizon)
      : asked_(asked), horizon_(horizon), target_(at(asked.topology.num_nodes(), 0)), root_(target_ + 1) {
    graph_.num_nodes = root_ + 1;
    for (std::size_t n = 0; n < asked.topology.num_nodes(); ++n) {
      for (int t = 0; t + 1 < horizon; ++t) add(at(n, t), at(n, t + 1), kMuch);
      if (NodeId(n) != asked.topology.node_of(gpu)) continue;
      for (int t = 0; t < horizon; ++t) add(at(n, t), target_, kMuch);
    }
    for (std::size_t l = 0; l < asked.topology.num_links(); ++l) add_link(LinkId(l));
    for (const Contribution& part : asked.demand.contributions()) {
      if (asked.backwards)
        add_part(part, gpu, part.sources, part.destinations);
      else
        add_part(part, gpu, part.destinations, {part.all_sources().begin(), part.all_sources().end()});
    }
  }

  double wanted() const { return wanted_; }
  MinCut cut() const { return min_cut(graph_, capacity_, root_, target_); }
  /// When each node comes to the source's side.
  std::vector<double> opening(const MinCut& cut) const {
    std::vector<double> alpha;
    for (std::size_t n = 0; n < asked_.topology.num_nodes(); ++n) {
      int t = 0;
      while (t < horizon_ && !cut.source_side[index(at(n, t))]) ++t;
      alpha.push_back(1.0 * t / kSteps);
    }
    return alpha;
  }

 private:
  static constexpr double kMuch = 1e9;

  int at(std::size_t node, int t) const { return static_cast<int>(node) * horizon_ + t; }
  int add_node() { return graph_.num_nodes++; }
  void add(int from, int to, double bytes) {
    graph_.arcs.push_back({from, to});
    capacity_.push_back(bytes);
  }

  /// Links of a group leave one GPU here, and pass a node of the group at every instant.
  void add_link(LinkId l) {
    const Link& link = asked_.topology.link(l);
    const NodeId from = asked_.backwards ? link.dst : link.src;
    const NodeId to = asked_.backwards ? link.src : link.dst;
    const int delay = steps(link.latency_us + (asked_.topology.is_gpu(from) ? link.message_us : 0));
    const bool shares = std::ranges::any_of(
        asked_.topology.shared_bandwidth(),
        [&](const SharedBandwidth& g) { return std::ranges::find(g.links, l) != g.links.end(); });
    for (int t = 0; t + delay < horizon_; ++t) {
      const int tail = at(from.index(), t);
      add(shares ? gate(tail, t) : tail, at(to.index(), t + delay), link.bandwidth_GBps * kUs / kSteps);
    }
  }

  int gate(int tail, int t) {
    while (gates_.size() <= index(t)) gates_.push_back(-1);
    int& node = gates_[index(t)];
    if (node >= 0) return node;
    node = add_node();
    add(tail, node, asked_.topology.shared_bandwidth().front().bandwidth_GBps * kUs / kSteps);
    return node;
  }

  void add_part(const Contribution& part, GpuId gpu, const std::vector<GpuId>& destinations,
                const std::vector<GpuId>& holders) {
    if (std::ranges::find(destinations, gpu) == destinations.end()) return;
    if (std::ranges::find(holders, gpu) != holders.end()) return;
    const int node = add_node();
    add(root_, node, part.bytes);
    wanted_ += part.bytes;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const int ready = steps(part.source_ready_us.empty() ? part.ready_us : part.source_ready_us[i]);
      if (ready < horizon_) add(node, at(asked_.topology.node_of(holders[i]).index(), ready), kMuch);
    }
  }

  const Case& asked_;
  int horizon_;
  int target_;
  int root_;
  Digraph graph_ = {};
  std::vector<double> capacity_ = {};
  std::vector<int> gates_ = {};
  double wanted_ = 0;
};

inline int below(Random& random, int n) {
  return static_cast<int>(random.below(index(n)));
}

inline Topology random_topology(Random& random, bool backwards) {
  const int gpus = 3 + below(random, 3);
  Fabric fabric(gpus);
  const int nodes = random.unit() < 0.5 ? fabric.cut_through() + 1 : gpus;
  std::vector<int> from_first;
  for (int n = 0; n < nodes; ++n) {
    for (int m = 0; m < nodes; ++m) {
      if (m == n || (m != (n + 1) % nodes && random.unit() > 0.4)) continue;
      // Links of the group send at the same instants as soon as they are free of message costs.
      const int l = fabric.link(n, m, 1 + below(random, 4), below(random, 4), n == 0 ? 0 : below(random, 3));
      if (n == 0) from_first.push_back(l);
    }
  }
  // Links of a group would leave no common node backwards.
  if (!backwards && from_first.size() > 1 && random.unit() < 0.5) {
    from_first.resize(2);
    fabric.share(from_first, 1 + below(random, 3));
  }
  return fabric.build();
}

/// A few parts on 3 to 5 GPUs and perhaps a switch: data of one or two sources, with ready times, or sums for
/// one GPU each.
inline Case random_case(Random& random) {
  const bool backwards = random.unit() < 0.3;
  Topology topology = random_topology(random, backwards);
  const int gpus = static_cast<int>(topology.num_gpus());
  std::vector<int> all;
  for (int g = 0; g < gpus; ++g) all.push_back(g);
  std::vector<Contribution> parts;
  for (int g = 0; g < gpus; ++g) {
    std::vector<int> others = all;
    std::erase(others, g);
    const double bytes = (1 + below(random, 12)) * kUs;
    if (backwards) {
      parts.push_back(sum_of(all, bytes, {g}));
      continue;
    }
    parts.push_back(part(g, bytes, others, below(random, 3)));
    const int second = others[random.below(others.size())];
    if (random.unit() > 0.3 || gpus < 4) continue;
    std::erase(others, second);
    Contribution& both = parts.back();
    both = sum_of({std::min(g, second), std::max(g, second)}, bytes, others);
    both.reduce = false;
    both.source_ready_us = {1.0 * below(random, 4), 1.0 * below(random, 4)};
  }
  Demand demand = custom(topology, std::move(parts));
  return {std::move(topology), std::move(demand), backwards};
}

/// The first horizon that serves `gpu`, in steps.
inline int least_steps(const Case& asked, GpuId gpu) {
  for (int horizon = 1;; ++horizon) {
    const Unrolled network(asked, gpu, horizon);
    if (network.cut().value >= network.wanted() * (1 - 1e-9)) return horizon;
  }
}

}  // namespace rondo
