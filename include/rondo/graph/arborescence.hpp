#pragma once

#include <vector>

#include "rondo/graph/digraph.hpp"

namespace rondo {

struct Arborescence {
  double cost = 0;          ///< infinity where the root does not reach all nodes
  std::vector<int> arcs{};  ///< one into every node but the root
};

/// The cheapest tree along which `root` reaches all nodes (Chu, Liu 1965; Edmonds 1967). `cost` holds one
/// value >= 0 an arc.
Arborescence cheapest_arborescence(const Digraph& graph, const std::vector<double>& cost, int root);

}  // namespace rondo
