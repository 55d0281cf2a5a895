#include "tree_growth.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {

OutTreeGrowth::OutTreeGrowth(const Topology& topology, const CopyGraph& graph, GpuId root,
                             const std::vector<GpuId>& terminals)
    : topology_(topology),
      graph_(graph),
      root_(topology.node_of(root)),
      num_terminals_(terminals.size()),
      is_terminal_(topology.num_nodes(), 0),
      distance_(topology.num_nodes()),
      delay_(topology.num_nodes()),
      last_way_(topology.num_nodes()),
      in_tree_(topology.num_nodes()) {
  for (const GpuId g : terminals) is_terminal_[topology.node_of(g).index()] = 1;
}

std::vector<int> OutTreeGrowth::grow(const std::vector<WayFigures>& figures) {
  using Entry = std::pair<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::ranges::fill(distance_, std::numeric_limits<double>::infinity());
  std::ranges::fill(in_tree_, 0);
  std::vector<int> tree;
  std::vector<int> joined;
  std::size_t missing = num_terminals_;
  const auto take = [&](NodeId node, double delay) {
    in_tree_[node.index()] = 1;
    delay_[node.index()] = distance_[node.index()] = delay;
    open.emplace(delay, node);
  };
  take(root_, 0);
  while (missing > 0 && !open.empty()) {
    const auto [far, node] = open.top();
    open.pop();
    if (far > distance_[node.index()]) continue;
    if (is_terminal_[node.index()] && !in_tree_[node.index()]) {
      joined.clear();
      NodeId at = node;
      for (; !in_tree_[at.index()]; at = graph_.ways[index(last_way_[at.index()])].src)
        joined.push_back(last_way_[at.index()]);
      double delay = delay_[at.index()];
      for (auto way = joined.rbegin(); way != joined.rend(); ++way) {
        tree.push_back(*way);
        delay += figures[index(*way)].delay;
        const NodeId next = graph_.ways[index(*way)].dst;
        if (is_terminal_[next.index()]) --missing;
        take(next, delay);
      }
      continue;
    }
    for (const int w : graph_.out[node.index()]) {
      const NodeId next = graph_.ways[index(w)].dst;
      if (in_tree_[next.index()]) continue;
      const WayFigures& way = figures[index(w)];
      const double there = far + way.cost + way.delay;
      if (!(there < distance_[next.index()])) continue;
      distance_[next.index()] = there;
      last_way_[next.index()] = w;
      open.emplace(there, next);
    }
  }
  if (missing > 0) {
    throw Error(ExitCode::unavailable,
                "engine rooted: some GPU is not reached through switches that copy or straight from another "
                "GPU; use --engine list");
  }
  return tree;
}

OutTree tree_of_ways(const Topology& topology, const CopyGraph& graph, const std::vector<int>& ways) {
  OutTree tree;
  // Per node where in the tree it stands: transfer and link.
  std::vector<std::pair<int, int>> place(topology.num_nodes(), {-1, -1});
  for (const int w : ways) {
    const CopyGraph::Way& way = graph.ways[index(w)];
    auto [transfer, link] = place[way.src.index()];
    if (topology.is_gpu(way.src)) {
      tree.transfers.push_back({.from = transfer, .from_link = link});
      transfer = static_cast<int>(tree.transfers.size()) - 1;
      link = -1;
    }
    TreeTransfer& through = tree.transfers[index(transfer)];
    for (const LinkId l : way.links) {
      through.links.push_back(l);
      through.parents.push_back(link);
      link = static_cast<int>(through.links.size()) - 1;
    }
    place[way.dst.index()] = {transfer, link};
  }
  return tree;
}

}  // namespace rondo
