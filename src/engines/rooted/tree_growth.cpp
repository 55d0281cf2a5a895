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
      us_(topology.num_nodes()),
      last_arc_(topology.num_nodes()),
      in_tree_(topology.num_nodes()) {
  for (const GpuId g : terminals) is_terminal_[topology.node_of(g).index()] = 1;
}

std::vector<int> OutTreeGrowth::grow(const std::vector<ArcFigures>& figures) {
  std::optional<std::vector<int>> tree = grow_within(figures, std::numeric_limits<double>::infinity());
  if (tree) return std::move(*tree);
  throw Error(ExitCode::unavailable,
              "engine rooted: some GPU is not reached through switches that copy or straight from another "
              "GPU; use --engine list");
}

std::optional<std::vector<int>> OutTreeGrowth::grow_within(const std::vector<ArcFigures>& figures,
                                                           double most_us) {
  using Entry = std::pair<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::ranges::fill(distance_, std::numeric_limits<double>::infinity());
  std::ranges::fill(in_tree_, 0);
  std::vector<int> tree;
  std::vector<int> joined;
  std::size_t missing = num_terminals_;
  const auto take = [&](NodeId node, double delay, double us) {
    in_tree_[node.index()] = 1;
    us_[node.index()] = us;
    delay_[node.index()] = distance_[node.index()] = delay;
    open.emplace(delay, node);
  };
  take(root_, 0, 0);
  while (missing > 0 && !open.empty()) {
    const auto [far, node] = open.top();
    open.pop();
    if (far > distance_[node.index()]) continue;
    if (is_terminal_[node.index()] && !in_tree_[node.index()]) {
      joined.clear();
      NodeId at = node;
      for (; !in_tree_[at.index()]; at = graph_.arcs[index(last_arc_[at.index()])].src)
        joined.push_back(last_arc_[at.index()]);
      double delay = delay_[at.index()];
      double us = us_[at.index()];
      for (auto arc = joined.rbegin(); arc != joined.rend(); ++arc) {
        tree.push_back(*arc);
        delay += figures[index(*arc)].delay;
        us += figures[index(*arc)].us;
        const NodeId next = graph_.arcs[index(*arc)].dst;
        if (is_terminal_[next.index()]) --missing;
        take(next, delay, us);
      }
      continue;
    }
    for (const int w : graph_.out[node.index()]) {
      const NodeId next = graph_.arcs[index(w)].dst;
      if (in_tree_[next.index()]) continue;
      const ArcFigures& arc = figures[index(w)];
      const double there = far + arc.cost + arc.delay;
      if (!(there < distance_[next.index()]) || us_[node.index()] + arc.us > most_us) continue;
      us_[next.index()] = us_[node.index()] + arc.us;
      distance_[next.index()] = there;
      last_arc_[next.index()] = w;
      open.emplace(there, next);
    }
  }
  if (missing > 0) return std::nullopt;
  return tree;
}

OutTree tree_of_arcs(const Topology& topology, const CopyGraph& graph, const std::vector<int>& arcs) {
  OutTree tree;
  // Per node where in the tree it stands: transfer and link.
  std::vector<std::pair<int, int>> place(topology.num_nodes(), {-1, -1});
  for (const int w : arcs) {
    const CopyGraph::Arc& arc = graph.arcs[index(w)];
    auto [transfer, link] = place[arc.src.index()];
    if (topology.is_gpu(arc.src)) {
      tree.transfers.push_back({.from = transfer, .from_link = link});
      transfer = static_cast<int>(tree.transfers.size()) - 1;
      link = -1;
    }
    TreeTransfer& through = tree.transfers[index(transfer)];
    for (const LinkId l : arc.links) {
      through.links.push_back(l);
      through.parents.push_back(link);
      link = static_cast<int>(through.links.size()) - 1;
    }
    place[arc.dst.index()] = {transfer, link};
  }
  return tree;
}

}  // namespace rondo
