#include "tree_columns.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"

namespace rondo {

std::vector<double> arc_costs(const CopyGraph& graph, const LinkRows& rows, std::span<const double> price) {
  std::vector<double> cost(graph.arcs.size(), 0);
  for (std::size_t w = 0; w < cost.size(); ++w) {
    for (const LinkId l : graph.arcs[w].links)
      for (const int row : rows.of(l)) cost[w] += price[index(row)] * rows.us(row);
  }
  return cost;
}

std::map<int, double> row_loads(const CopyGraph& graph, const LinkRows& rows, const std::vector<int>& arcs,
                                double unit_us) {
  std::map<int, double> load;
  for (const int w : arcs) {
    for (const LinkId l : graph.arcs[index(w)].links)
      for (const int row : rows.of(l)) load[row] += rows.us(row) / unit_us;
  }
  return load;
}

MasterColumn column_of(const std::map<int, double>& loads) {
  MasterColumn column;
  for (const auto& [row, load] : loads) {
    column.rows.push_back(row);
    column.loads.push_back(load);
  }
  return column;
}

double tree_depth_us(const CopyGraph& graph, const std::vector<double>& delay_us,
                     const std::vector<int>& arcs, std::vector<double>& reached_us) {
  double deepest_us = 0;
  for (const int w : arcs) {
    const CopyGraph::Arc& arc = graph.arcs[index(w)];
    double& there_us = reached_us[arc.dst.index()];
    there_us = reached_us[arc.src.index()] + delay_us[index(w)];
    deepest_us = std::max(deepest_us, there_us);
  }
  return deepest_us;
}

std::vector<int> tree_key(std::vector<int> arcs) {
  std::ranges::sort(arcs);
  return arcs;
}

}  // namespace rondo
