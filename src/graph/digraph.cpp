#include "rondo/graph/digraph.hpp"

#include <lemon/dijkstra.h>
#include <lemon/preflow.h>
#include <lemon/static_graph.h>

#include <limits>
#include <numeric>
#include <utility>

namespace rondo {
namespace {

/// A LEMON static graph, whose arcs have to be handed over sorted by their tails.
struct Lemon {
  lemon::StaticDigraph graph;
  std::vector<int> arc_of;  ///< LEMON's arc -> ours

  explicit Lemon(const Digraph& from) : arc_of(from.arcs.size()) {
    std::vector<std::size_t> next(static_cast<std::size_t>(from.num_nodes) + 1, 0);
    for (const Arc& arc : from.arcs) ++next[static_cast<std::size_t>(arc.src) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t a = 0; a < from.arcs.size(); ++a)
      arc_of[next[static_cast<std::size_t>(from.arcs[a].src)]++] = static_cast<int>(a);
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

Digraph reversed(Digraph graph) {
  for (Arc& arc : graph.arcs) std::swap(arc.src, arc.dst);
  return graph;
}

struct ShortestPathSearch::Implementation {
  using Lengths = lemon::StaticDigraph::ArcMap<double>;

  Lemon graph;
  Lengths lengths;
  lemon::Dijkstra<lemon::StaticDigraph, Lengths> search;

  explicit Implementation(const Digraph& from)
      : graph(from), lengths(graph.graph), search(graph.graph, lengths) {}

  ShortestPaths found() const {
    const auto n = static_cast<std::size_t>(graph.graph.nodeNum());
    ShortestPaths result{std::vector<double>(n, std::numeric_limits<double>::infinity()),
                         std::vector<int>(n, -1)};
    for (std::size_t i = 0; i < n; ++i) {
      const auto node = graph.graph.node(static_cast<int>(i));
      if (!search.reached(node)) continue;
      result.distance[i] = search.dist(node);
      const auto arc = search.predArc(node);
      if (arc != lemon::INVALID) {
        result.last_arc[i] = graph.arc_of[static_cast<std::size_t>(graph.graph.index(arc))];
      }
    }
    return result;
  }
};

ShortestPathSearch::ShortestPathSearch(const Digraph& graph)
    : implementation_(std::make_unique<Implementation>(graph)) {}
ShortestPathSearch::~ShortestPathSearch() = default;

void ShortestPathSearch::set_lengths(const std::vector<double>& length) {
  implementation_->graph.copy_values(length, implementation_->lengths);
}

ShortestPaths ShortestPathSearch::from(int source) {
  implementation_->search.run(implementation_->graph.graph.node(source));
  return implementation_->found();
}

ShortestPaths ShortestPathSearch::from(const std::vector<int>& sources, int target) {
  auto& search = implementation_->search;
  search.init();
  for (const int source : sources) search.addSource(implementation_->graph.graph.node(source));
  search.start(implementation_->graph.graph.node(target));
  return implementation_->found();
}

ShortestPaths shortest_paths(const Digraph& graph, const std::vector<double>& length, int source) {
  ShortestPathSearch search(graph);
  search.set_lengths(length);
  return search.from(source);
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
