#pragma once

#include <vector>

namespace rondo {

/// Undirected, with coloured vertices 0 .. colour.size() - 1; no edge twice.
struct ColouredGraph {
  std::vector<int> colour;
  std::vector<std::pair<int, int>> edges;
};

struct Automorphisms {
  std::vector<std::vector<int>> generators;  ///< images of all vertices
  double log10_order = 0;
};

/// By nauty's Traces.
Automorphisms automorphisms(const ColouredGraph& graph);

}  // namespace rondo
