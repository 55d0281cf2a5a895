#include <algorithm>

#include "steps.hpp"

namespace rondo::lowering {
namespace {

/// For every step of the program the latest step of each threadblock of one GPU that ends before it, or is
/// it.
class Reach {
 public:
  Reach(const StepGraph& graph, const Plan& plan, int gpu) : graph_(graph), column_(plan.tbs.size(), -1) {
    for (std::size_t t = 0; t < plan.tbs.size(); ++t) {
      if (plan.tbs[t].gpu == gpu) column_[t] = static_cast<int>(width_++);
    }
    latest_.assign(graph.nodes.size() * width_, -1);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const StepNode& node = graph.nodes[n];
      join(n, node.previous);
      join(n, node.sender);
      for (const int other : node.waits_for) join(n, other);
      if (node.gpu == gpu) row(n)[column_[static_cast<std::size_t>(node.tb)]] = node.index;
    }
  }

  /// Whether step `to` follows step `from`, which is of this GPU.
  bool follows(int to, int from) const {
    const StepNode& node = graph_.nodes[static_cast<std::size_t>(from)];
    const auto column = static_cast<std::size_t>(column_[static_cast<std::size_t>(node.tb)]);
    return latest_[static_cast<std::size_t>(to) * width_ + column] >= node.index;
  }

 private:
  int* row(std::size_t n) { return latest_.data() + n * width_; }
  void join(std::size_t n, int earlier) {
    if (earlier < 0) return;
    const int* from = row(static_cast<std::size_t>(earlier));
    int* to = row(n);
    for (std::size_t c = 0; c < width_; ++c) to[c] = std::max(to[c], from[c]);
  }

  const StepGraph& graph_;
  std::size_t width_ = 0;
  std::vector<int> column_;  ///< per threadblock of the plan
  std::vector<int> latest_;  ///< steps x threadblocks of the GPU
};

}  // namespace

void remove_implied_waits(StepGraph& graph, const Plan& plan) {
  std::vector<std::vector<int>> waiting(graph.scratch_chunks.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const StepNode& node = graph.nodes[n];
    if (!node.waits_for.empty()) waiting[static_cast<std::size_t>(node.gpu)].push_back(static_cast<int>(n));
  }
  // Implied waits are found before any is removed: in an acyclic graph the reduction is unique, so the
  // others imply them without their help.
  std::vector<std::vector<int>> kept(graph.nodes.size());
  for (std::size_t gpu = 0; gpu < waiting.size(); ++gpu) {
    if (waiting[gpu].empty()) continue;
    const Reach reach(graph, plan, static_cast<int>(gpu));
    for (const int n : waiting[gpu]) {
      const StepNode& node = graph.nodes[static_cast<std::size_t>(n)];
      const auto implied = [&](int wait) {
        const auto via = [&](int other) { return other >= 0 && other != wait && reach.follows(other, wait); };
        return via(node.previous) || via(node.sender) ||
               std::any_of(node.waits_for.begin(), node.waits_for.end(), via);
      };
      std::copy_if(node.waits_for.begin(), node.waits_for.end(),
                   std::back_inserter(kept[static_cast<std::size_t>(n)]),
                   [&](int wait) { return !implied(wait); });
    }
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) graph.nodes[n].waits_for = std::move(kept[n]);
}

}  // namespace rondo::lowering
