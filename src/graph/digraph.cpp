#include "rondo/graph/digraph.hpp"

#include <lemon/dijkstra.h>
#include <lemon/preflow.h>
#include <lemon/static_graph.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace rondo {
namespace {

/// A LEMON static graph, whose arcs have to be handed over sorted by their tails.
struct Lemon {
  lemon::StaticDigraph graph;
  std::vector<int> arc_of;  ///< LEMON's arc -> ours

  explicit Lemon(const Digraph& from) : arc_of(from.arcs.size()) {
    std::iota(arc_of.begin(), arc_of.end(), 0);
    std::stable_sort(arc_of.begin(), arc_of.end(), [&](int a, int b) {
      return from.arcs[static_cast<std::size_t>(a)].src < from.arcs[static_cast<std::size_t>(b)].src;
    });
    std::vector<std::pair<int, int>> ends;
    ends.reserve(arc_of.size());
    for (const int a : arc_of) {
      const Arc& arc = from.arcs[static_cast<std::size_t>(a)];
      ends.emplace_back(arc.src, arc.dst);
    }
    graph.build(from.num_nodes, ends.begin(), ends.end());
  }

  void copy_values(const std::vector<double>& from, lemon::StaticDigraph::ArcMap<double>& to) const {
    for (std::size_t i = 0; i < arc_of.size(); ++i) {
      to[graph.arc(static_cast<int>(i))] = from[static_cast<std::size_t>(arc_of[i])];
    }
  }
};

}  // namespace

ShortestPaths shortest_paths(const Digraph& graph, const std::vector<double>& length, int source) {
  const Lemon lemon_graph(graph);
  lemon::StaticDigraph::ArcMap<double> lengths(lemon_graph.graph);
  lemon_graph.copy_values(length, lengths);
  lemon::Dijkstra<lemon::StaticDigraph, lemon::StaticDigraph::ArcMap<double>> search(lemon_graph.graph,
                                                                                     lengths);
  search.run(lemon_graph.graph.node(source));

  const auto n = static_cast<std::size_t>(graph.num_nodes);
  ShortestPaths result{std::vector<double>(n, std::numeric_limits<double>::infinity()),
                       std::vector<int>(n, -1)};
  for (int v = 0; v < graph.num_nodes; ++v) {
    const auto node = lemon_graph.graph.node(v);
    if (!search.reached(node)) continue;
    const auto i = static_cast<std::size_t>(v);
    result.distance[i] = search.dist(node);
    const auto arc = search.predArc(node);
    if (arc != lemon::INVALID) {
      result.last_arc[i] = lemon_graph.arc_of[static_cast<std::size_t>(lemon_graph.graph.index(arc))];
    }
  }
  return result;
}

MinCut min_cut(const Digraph& graph, const std::vector<double>& capacity, int source, int target) {
  const Lemon lemon_graph(graph);
  lemon::StaticDigraph::ArcMap<double> capacities(lemon_graph.graph);
  lemon_graph.copy_values(capacity, capacities);
  lemon::Preflow<lemon::StaticDigraph, lemon::StaticDigraph::ArcMap<double>> flow(
      lemon_graph.graph, capacities, lemon_graph.graph.node(source), lemon_graph.graph.node(target));
  flow.runMinCut();

  MinCut result;
  result.source_side.resize(static_cast<std::size_t>(graph.num_nodes));
  for (int v = 0; v < graph.num_nodes; ++v) {
    result.source_side[static_cast<std::size_t>(v)] = flow.minCut(lemon_graph.graph.node(v)) ? 1 : 0;
  }
  for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
    if (result.source_side[static_cast<std::size_t>(graph.arcs[a].src)] &&
        !result.source_side[static_cast<std::size_t>(graph.arcs[a].dst)]) {
      result.value += capacity[a];
    }
  }
  return result;
}

}  // namespace rondo
