#include "rondo/decomp/flow_paths.hpp"

#include <algorithm>
#include <utility>

namespace rondo {
namespace {

/// Relative to all that the sinks want.
constexpr double kNoFlow = 1e-9;

class PathDecomposition {
 public:
  PathDecomposition(const Digraph& graph, std::vector<double> flow, int source, double no_flow)
      : graph_(graph),
        flow_(std::move(flow)),
        source_(source),
        no_flow_(no_flow),
        into_(static_cast<std::size_t>(graph.num_nodes)),
        position_(static_cast<std::size_t>(graph.num_nodes), -1) {
    for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
      if (flow_[a] > no_flow_)
        into_[static_cast<std::size_t>(graph.arcs[a].dst)].push_back(static_cast<int>(a));
    }
  }

  std::vector<FlowPath> paths_to(const Sink& sink) {
    std::vector<FlowPath> paths;
    for (double missing = sink.amount; missing > no_flow_;) {
      FlowPath path{path_to(sink.node), missing};
      if (path.arcs.empty()) break;
      for (const int a : path.arcs) path.amount = std::min(path.amount, flow(a));
      for (const int a : path.arcs) flow(a) -= path.amount;
      missing -= path.amount;
      paths.push_back(std::move(path));
    }
    return paths;
  }

 private:
  double& flow(int arc) { return flow_[static_cast<std::size_t>(arc)]; }

  int largest_inflow(int node) {
    int best = -1;
    for (const int a : into_[static_cast<std::size_t>(node)]) {
      if (flow(a) > (best < 0 ? no_flow_ : flow(best))) best = a;
    }
    return best;
  }

  /// Walks back from `target`; empty where no flow arrives. A node met twice closes a cycle, which is
  /// cancelled.
  std::vector<int> path_to(int target) {
    std::vector<int> reversed;
    int node = target;
    position_[static_cast<std::size_t>(node)] = 0;
    while (node != source_) {
      const int arc = largest_inflow(node);
      if (arc < 0) break;
      reversed.push_back(arc);
      node = graph_.arcs[static_cast<std::size_t>(arc)].src;
      int& position = position_[static_cast<std::size_t>(node)];
      if (position >= 0) {
        cancel_cycle(reversed, static_cast<std::size_t>(position));
      } else {
        position = static_cast<int>(reversed.size());
      }
    }
    position_[static_cast<std::size_t>(target)] = -1;
    for (const int a : reversed)
      position_[static_cast<std::size_t>(graph_.arcs[static_cast<std::size_t>(a)].src)] = -1;
    if (node != source_) return {};
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
  }

  /// The cycle is reversed[first ..]; the walk goes on from the node where it began.
  void cancel_cycle(std::vector<int>& reversed, std::size_t first) {
    double least = flow(reversed.back());
    for (std::size_t i = first; i < reversed.size(); ++i) least = std::min(least, flow(reversed[i]));
    for (std::size_t i = first; i < reversed.size(); ++i) {
      flow(reversed[i]) -= least;
      const int left = graph_.arcs[static_cast<std::size_t>(reversed[i])].src;
      if (i + 1 < reversed.size()) position_[static_cast<std::size_t>(left)] = -1;
    }
    reversed.resize(first);
  }

  const Digraph& graph_;
  std::vector<double> flow_;
  int source_;
  double no_flow_;
  std::vector<std::vector<int>> into_;
  std::vector<int> position_;  ///< per node: arcs walked when it was reached, -1 off the walk
};

}  // namespace

std::vector<std::vector<FlowPath>> decompose_flow(const Digraph& graph, std::vector<double> flow, int source,
                                                  const std::vector<Sink>& sinks) {
  double total = 0;
  for (const Sink& sink : sinks) total += sink.amount;
  PathDecomposition decomposition(graph, std::move(flow), source, kNoFlow * total);
  std::vector<std::vector<FlowPath>> paths;
  for (const Sink& sink : sinks) paths.push_back(decomposition.paths_to(sink));
  return paths;
}

}  // namespace rondo
