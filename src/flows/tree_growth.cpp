#include "tree_growth.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace rondo {
namespace {

constexpr double kShallowness = 0.1;  ///< the part of the cost from the root that counts again

/// A GPU that is reached twice is left with its earlier hop; then from the root onwards.
std::vector<SteinerHop> in_order(const Topology& topology, NodeId root, std::vector<SteinerHop> hops) {
  std::map<NodeId, std::size_t> into;
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const auto [known, is_new] = into.try_emplace(topology.link(hops[h].links.back()).dst, h);
    if (!is_new && hops[h].period < hops[known->second].period) known->second = h;
  }
  std::map<NodeId, std::vector<std::size_t>> out_of;
  for (const auto& [node, h] : into) out_of[topology.link(hops[h].links.front()).src].push_back(h);
  std::vector<SteinerHop> ordered;
  std::vector<NodeId> reached{root};
  for (std::size_t r = 0; r < reached.size(); ++r) {
    for (const std::size_t h : out_of[reached[r]]) {
      reached.push_back(topology.link(hops[h].links.back()).dst);
      ordered.push_back(std::move(hops[h]));
    }
  }
  return ordered;
}

}  // namespace

TreeGrowth::TreeGrowth(const Topology& topology, const PeriodGraph& graph)
    : topology_(topology),
      graph_(graph),
      distance_(graph.num_nodes()),
      last_(graph.num_nodes()),
      in_tree_(graph.num_nodes()),
      from_root_(graph.num_nodes()),
      is_wanting_(topology.num_nodes()) {}

std::optional<std::vector<SteinerHop>> TreeGrowth::grow(const SteinerBlock& block, std::size_t period,
                                                        const std::vector<double>& cost) {
  std::ranges::fill(in_tree_, 0);
  std::ranges::fill(is_wanting_, 0);
  for (const GpuId g : block.destinations) is_wanting_[topology_.node_of(g).index()] = 1;
  const NodeId root = topology_.node_of(block.origin);
  tree_ = {graph_.node(root, period)};
  in_tree_[tree_.front()] = 1;
  from_root_[tree_.front()] = 0;
  std::vector<SteinerHop> hops;
  while (std::ranges::count(is_wanting_, 1) > 0) {
    const std::optional<std::size_t> next = nearest(cost);
    if (!next) return std::nullopt;
    join(*next, hops);
  }
  return in_order(topology_, root, std::move(hops));
}

std::optional<std::size_t> TreeGrowth::nearest(const std::vector<double>& cost) {
  using Entry = std::pair<double, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::ranges::fill(distance_, std::numeric_limits<double>::infinity());
  for (const std::size_t node : tree_) {
    distance_[node] = kShallowness * from_root_[node];
    open.emplace(distance_[node], node);
  }
  while (!open.empty()) {
    const auto [far, node] = open.top();
    open.pop();
    if (far > distance_[node]) continue;
    if (is_wanting_[graph_.node_of(node).index()]) return node;
    const bool may_wait = topology_.is_gpu(graph_.node_of(node));
    for (const std::size_t arc : graph_.out(node)) {
      if (graph_.waits(arc) && !may_wait) continue;
      const std::size_t next = graph_.dst(arc);
      const double there = far + (graph_.waits(arc) ? 0 : cost[arc]);
      if (!(there < distance_[next])) continue;
      distance_[next] = there;
      last_[next] = arc;
      open.emplace(there, next);
    }
  }
  return std::nullopt;
}

void TreeGrowth::join(std::size_t reached, std::vector<SteinerHop>& hops) {
  std::vector<std::size_t> arcs;  // from the end to the tree
  std::size_t node = reached;
  while (!in_tree_[node]) {
    arcs.push_back(last_[node]);
    node = graph_.src(last_[node]);
  }
  SteinerHop hop;
  for (std::size_t a = arcs.size(); a-- > 0;) {
    const std::size_t arc = arcs[a];
    if (graph_.waits(arc)) continue;
    if (hop.links.empty()) hop.period = graph_.period(arc);
    hop.links.push_back(graph_.link(arc));
    const std::size_t end = graph_.dst(arc);
    if (!topology_.is_gpu(graph_.node_of(end))) continue;
    if (!std::exchange(in_tree_[end], 1)) tree_.push_back(end);
    from_root_[end] = distance_[end];
    is_wanting_[graph_.node_of(end).index()] = 0;
    hops.push_back(std::exchange(hop, {}));
  }
}

}  // namespace rondo
