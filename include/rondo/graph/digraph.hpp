#pragma once

#include <memory>
#include <vector>

/// Shortest paths and minimum cuts, by COIN-OR's LEMON.
///
/// LEMON 1.3 does not compile as C++20, so this module alone is C++17 and its header names nothing of LEMON.
namespace rondo {

struct Arc {
  int src = 0;
  int dst = 0;
};

/// Nodes are 0..num_nodes-1; arcs keep the order they were given in; parallel arcs are allowed.
struct Digraph {
  int num_nodes = 0;
  std::vector<Arc> arcs;
};

/// Every arc from its end to its start, in the same order.
Digraph reversed(Digraph graph);

struct ShortestPaths {
  std::vector<double> distance;  ///< per node; infinity where there is no path
  std::vector<int> last_arc;     ///< per node; -1 at the source and where there is no path
};

/// Dijkstra from `source`. `length` holds one value >= 0 an arc.
ShortestPaths shortest_paths(const Digraph& graph, const std::vector<double>& length, int source);

/// shortest_paths() for many sources and lengths over the same graph, which is set up once.
class ShortestPathSearch {
 public:
  explicit ShortestPathSearch(const Digraph& graph);
  ~ShortestPathSearch();
  ShortestPathSearch(const ShortestPathSearch&) = delete;
  ShortestPathSearch& operator=(const ShortestPathSearch&) = delete;

  /// One value >= 0 an arc.
  void set_lengths(const std::vector<double>& length);
  ShortestPaths from(int source);
  /// From whichever of `sources` is nearest, as far as `target`: farther nodes may be without a path.
  ShortestPaths from(const std::vector<int>& sources, int target);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

struct MinCut {
  double value = 0;               ///< capacity of the arcs that leave the source's side
  std::vector<char> source_side;  ///< per node; 1 on the source's side
};

/// Maximum flow by preflow-push and the minimum cut it proves. `capacity` holds one value >= 0 an arc.
MinCut min_cut(const Digraph& graph, const std::vector<double>& capacity, int source, int target);

}  // namespace rondo
