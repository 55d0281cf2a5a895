#include "rondo/decomp/flow_paths.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace rondo {
namespace {

/// Relative to all that the sinks want.
constexpr double kNoFlow = 1e-9;

class PathDecomposition {
 public:
  PathDecomposition(const Digraph& graph, const std::vector<double>& flow, int source, double no_flow)
      : source_(source),
        no_flow_(no_flow),
        first_(static_cast<std::size_t>(graph.num_nodes) + 1, 0),
        position_(static_cast<std::size_t>(graph.num_nodes), -1) {
    for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
      if (flow[a] > no_flow_) ++first_[static_cast<std::size_t>(graph.arcs[a].dst) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    inflows_.resize(first_.back());
    std::vector<std::size_t> next = first_;
    for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
      if (flow[a] > no_flow_)
        inflows_[next[static_cast<std::size_t>(graph.arcs[a].dst)]++] = {flow[a], graph.arcs[a].src,
                                                                         static_cast<int>(a)};
    }
  }

  std::vector<FlowPath> paths_to(const Sink& sink) {
    std::vector<FlowPath> paths;
    for (double missing = sink.amount; missing > no_flow_;) {
      if (!walk_back(sink.node) || walk_.empty()) break;
      FlowPath path{{}, missing};
      for (const std::size_t i : walk_) path.amount = std::min(path.amount, inflows_[i].flow);
      for (const std::size_t i : walk_) inflows_[i].flow -= path.amount;
      path.arcs.reserve(walk_.size());
      for (auto i = walk_.rbegin(); i != walk_.rend(); ++i) path.arcs.push_back(inflows_[*i].arc);
      missing -= path.amount;
      paths.push_back(std::move(path));
    }
    return paths;
  }

 private:
  /// An arc with flow. Those into one node lie together: walks go over each many times.
  struct Inflow {
    double flow;
    int src;
    int arc;
  };

  /// The first one of those that are equal; nothing where none is left.
  std::optional<std::size_t> largest_inflow(int node) const {
    std::optional<std::size_t> best;
    double most = no_flow_;
    const std::size_t end = first_[static_cast<std::size_t>(node) + 1];
    for (std::size_t i = first_[static_cast<std::size_t>(node)]; i < end; ++i) {
      if (inflows_[i].flow <= most) continue;
      most = inflows_[i].flow;
      best = i;
    }
    return best;
  }

  /// From `target` to the source; false where no flow arrives. A node met twice closes a cycle, which is
  /// cancelled.
  bool walk_back(int target) {
    walk_.clear();
    int node = target;
    position_[static_cast<std::size_t>(node)] = 0;
    while (node != source_) {
      const auto inflow = largest_inflow(node);
      if (!inflow) break;
      walk_.push_back(*inflow);
      node = inflows_[*inflow].src;
      int& position = position_[static_cast<std::size_t>(node)];
      if (position >= 0) {
        cancel_cycle(static_cast<std::size_t>(position));
      } else {
        position = static_cast<int>(walk_.size());
      }
    }
    position_[static_cast<std::size_t>(target)] = -1;
    for (const std::size_t i : walk_) position_[static_cast<std::size_t>(inflows_[i].src)] = -1;
    return node == source_;
  }

  /// The cycle is walk_[first ..]; the walk goes on from the node where it began.
  void cancel_cycle(std::size_t first) {
    double least = inflows_[walk_.back()].flow;
    for (std::size_t k = first; k < walk_.size(); ++k) least = std::min(least, inflows_[walk_[k]].flow);
    for (std::size_t k = first; k < walk_.size(); ++k) {
      Inflow& inflow = inflows_[walk_[k]];
      inflow.flow -= least;
      if (k + 1 < walk_.size()) position_[static_cast<std::size_t>(inflow.src)] = -1;
    }
    walk_.resize(first);
  }

  int source_;
  double no_flow_;
  std::vector<Inflow> inflows_;     ///< into node after node
  std::vector<std::size_t> first_;  ///< of each node
  std::vector<std::size_t> walk_;   ///< into inflows_
  std::vector<int> position_;       ///< per node: arcs walked when it was reached, -1 off the walk
};

}  // namespace

std::vector<std::vector<FlowPath>> decompose_flow(const Digraph& graph, const std::vector<double>& flow,
                                                  int source, const std::vector<Sink>& sinks) {
  double total = 0;
  for (const Sink& sink : sinks) total += sink.amount;
  PathDecomposition decomposition(graph, flow, source, kNoFlow * total);
  std::vector<std::vector<FlowPath>> paths;
  for (const Sink& sink : sinks) paths.push_back(decomposition.paths_to(sink));
  return paths;
}

}  // namespace rondo
