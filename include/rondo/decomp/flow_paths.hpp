#pragma once

#include <vector>

#include "rondo/graph/digraph.hpp"

/// Flow decomposition (Ford and Fulkerson, Flows in Networks, section I.2): a flow is a sum of paths and
/// cycles.
namespace rondo {

/// A simple path from the source of a flow to one of its sinks.
struct FlowPath {
  std::vector<int> arcs;
  double amount = 0;
};

struct Sink {
  int node = 0;
  double amount = 0;
};

/// Splits the flow of one source (one value an arc) into paths, one list a sink; together a sink's paths
/// carry what it wants, up to rounding errors of the flow. Cycles are cancelled. Every path follows the
/// largest flows back from its sink, so that there are few of them.
std::vector<std::vector<FlowPath>> decompose_flow(const Digraph& graph, const std::vector<double>& flow,
                                                  int source, const std::vector<Sink>& sinks);

}  // namespace rondo
