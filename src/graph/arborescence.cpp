#include "rondo/graph/arborescence.hpp"

#include <lemon/list_graph.h>
#include <lemon/min_cost_arborescence.h>

#include <limits>

namespace rondo {

Arborescence cheapest_arborescence(const Digraph& graph, const std::vector<double>& cost, int root) {
  lemon::ListDigraph lemon_graph;
  std::vector<lemon::ListDigraph::Node> nodes;
  for (int n = 0; n < graph.num_nodes; ++n) nodes.push_back(lemon_graph.addNode());
  lemon::ListDigraph::ArcMap<double> lemon_cost(lemon_graph);
  std::vector<int> arc_of;
  for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
    const Arc& arc = graph.arcs[a];
    if (arc.dst == root) continue;
    const auto lemon_arc = lemon_graph.addArc(nodes[static_cast<std::size_t>(arc.src)],
                                              nodes[static_cast<std::size_t>(arc.dst)]);
    lemon_cost[lemon_arc] = cost[a];
    arc_of.push_back(static_cast<int>(a));
  }
  lemon::MinCostArborescence<lemon::ListDigraph, lemon::ListDigraph::ArcMap<double>> search(lemon_graph,
                                                                                            lemon_cost);
  search.run(nodes[static_cast<std::size_t>(root)]);
  Arborescence tree;
  for (int n = 0; n < graph.num_nodes; ++n) {
    if (n == root) continue;
    const auto node = nodes[static_cast<std::size_t>(n)];
    if (!search.reached(node)) return {std::numeric_limits<double>::infinity(), {}};
    const int arc = arc_of[static_cast<std::size_t>(lemon_graph.id(search.pred(node)))];
    tree.arcs.push_back(arc);
    tree.cost += cost[static_cast<std::size_t>(arc)];
  }
  return tree;
}

}  // namespace rondo
