#include "bounded_tree.hpp"

#include <algorithm>
#include <limits>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr int kPassesOverNodes = 16;
/// Relative to the cost of all arcs of the tree; less is no gain.
constexpr double kLeastPartGained = 1e-9;
/// Of two paths as long as the bound neither is longer.
constexpr double kRoundingOfBound = 1e-9;

class BoundedTree {
 public:
  BoundedTree(const CopyGraph& graph, NodeId root, const std::vector<char>& is_wanted,
              const std::vector<double>& cost, const std::vector<double>& delay, double most_delay,
              const std::vector<int>& arcs)
      : graph_(graph),
        root_(root.index()),
        is_wanted_(is_wanted),
        cost_(cost),
        delay_(delay),
        most_delay_(most_delay * (1 + kRoundingOfBound)),
        into_(graph.out.size()),
        enters_(graph.out.size(), kNoArc),
        depth_(graph.out.size(), 0),
        height_(graph.out.size(), 0),
        children_(graph.out.size()) {
    for (std::size_t w = 0; w < graph.arcs.size(); ++w)
      into_[graph.arcs[w].dst.index()].push_back(static_cast<int>(w));
    double all = 0;
    for (const int w : arcs) {
      enter_by(w);
      all += cost_[index(w)];
    }
    least_gain_ = kLeastPartGained * all;
    measure();
  }

  std::vector<int> run() {
    for (int pass = 0; pass < kPassesOverNodes; ++pass) {
      bool is_cheaper = false;
      for (std::size_t node = 0; node < enters_.size(); ++node)
        if (enters_[node] != kNoArc) is_cheaper = improve(node) || enter_elsewhere(node) || is_cheaper;
      if (!is_cheaper) break;
    }
    std::vector<int> arcs;
    std::vector<std::size_t> nodes{root_};
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (const std::size_t child : children_[nodes[k]]) {
        arcs.push_back(enters_[child]);
        nodes.push_back(child);
      }
    }
    return arcs;
  }

 private:
  std::size_t start_of(int w) const { return graph_.arcs[index(w)].src.index(); }
  std::size_t end_of(int w) const { return graph_.arcs[index(w)].dst.index(); }
  bool is_reached(std::size_t node) const { return node == root_ || enters_[node] != kNoArc; }

  void enter_by(int w) {
    enters_[end_of(w)] = w;
    children_[start_of(w)].push_back(end_of(w));
  }

  void leave(std::size_t node) {
    std::erase(children_[start_of(enters_[node])], node);
    enters_[node] = kNoArc;
  }

  /// Depths from the root and heights above the furthest leaf.
  void measure() {
    order_.assign(1, root_);
    for (std::size_t k = 0; k < order_.size(); ++k) {
      for (const std::size_t child : children_[order_[k]]) {
        depth_[child] = depth_[order_[k]] + delay_[index(enters_[child])];
        order_.push_back(child);
      }
    }
    for (std::size_t k = order_.size(); k-- > 0;) {
      double& height = height_[order_[k]] = 0;
      for (const std::size_t child : children_[order_[k]])
        height = std::max(height, height_[child] + delay_[index(enters_[child])]);
    }
  }

  bool is_behind(std::size_t node, std::size_t above) const {
    for (; node != above; node = start_of(enters_[node]))
      if (node == root_) return false;
    return true;
  }

  /// What the arcs cost that nothing needs any more once `node` is entered from behind `from`.
  double cost_of_entry(std::size_t node, std::size_t from) const {
    double cost = cost_[index(enters_[node])];
    for (std::size_t at = start_of(enters_[node]);
         at != root_ && at != from && !is_wanted_[at] && children_[at].size() == 1;
         at = start_of(enters_[at]))
      cost += cost_[index(enters_[at])];
    return cost;
  }

  struct Entry {
    double cost = std::numeric_limits<double>::infinity();
    double depth = 0;
    int first = kNoArc;  ///< into a node that is not reached yet, before `last`
    int last = kNoArc;
  };

  void consider(std::size_t node, Entry entry, std::size_t from, Entry& best) const {
    if (entry.cost > best.cost || (entry.cost == best.cost && entry.depth >= best.depth)) return;
    if (depth_[from] + entry.depth + height_[node] > most_delay_ || is_behind(from, node)) return;
    entry.depth += depth_[from];
    if (entry.cost == best.cost && entry.depth >= best.depth) return;
    best = entry;
  }

  /// Enters `node` from elsewhere and, from it, the node above through which all of this was entered.
  bool enter_elsewhere(std::size_t node) {
    for (std::size_t above = start_of(enters_[node]); above != root_; above = start_of(enters_[above])) {
      const double saved = cost_[index(enters_[node])] + cost_[index(enters_[above])];
      for (const int back : into_[above]) {
        if (start_of(back) != node) continue;
        const double height = std::max(height_[node], delay_[index(back)] + height_[above]);
        for (const int w : into_[node]) {
          const std::size_t from = start_of(w);
          if (!is_reached(from) || !(saved - cost_[index(w)] - cost_[index(back)] > least_gain_) ||
              depth_[from] + delay_[index(w)] + height > most_delay_ || is_behind(from, above)) {
            continue;
          }
          leave(node);
          leave(above);
          enter_by(w);
          enter_by(back);
          measure();
          return true;
        }
      }
    }
    return false;
  }

  bool improve(std::size_t node) {
    Entry best;
    for (const int w : into_[node]) {
      const std::size_t from = start_of(w);
      if (w == enters_[node]) continue;
      const Entry straight{cost_[index(w)], delay_[index(w)], kNoArc, w};
      if (is_reached(from)) {
        consider(node, straight, from, best);
        continue;
      }
      for (const int v : into_[from]) {
        if (!is_reached(start_of(v))) continue;
        consider(node, {straight.cost + cost_[index(v)], straight.depth + delay_[index(v)], v, w},
                 start_of(v), best);
      }
    }
    if (best.last == kNoArc) return false;
    const std::size_t from = start_of(best.first == kNoArc ? best.last : best.first);
    if (!(cost_of_entry(node, from) - best.cost > least_gain_)) return false;
    std::size_t before = start_of(enters_[node]);
    leave(node);
    if (best.first != kNoArc) enter_by(best.first);
    enter_by(best.last);
    while (before != root_ && !is_wanted_[before] && children_[before].empty()) {
      const std::size_t above = start_of(enters_[before]);
      leave(before);
      before = above;
    }
    measure();
    return true;
  }

  const CopyGraph& graph_;
  std::size_t root_;
  const std::vector<char>& is_wanted_;
  const std::vector<double>& cost_;
  const std::vector<double>& delay_;
  double most_delay_;
  double least_gain_ = 0;
  std::vector<std::vector<int>> into_;
  std::vector<int> enters_;     ///< per node, the arc
  std::vector<double> depth_;   ///< per node that is reached
  std::vector<double> height_;  ///< per node that is reached
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<int> cheaper_within(const CopyGraph& graph, NodeId root, const std::vector<char>& is_wanted,
                                const std::vector<double>& cost, const std::vector<double>& delay,
                                double most_delay, const std::vector<int>& arcs) {
  return BoundedTree(graph, root, is_wanted, cost, delay, most_delay, arcs).run();
}

}  // namespace rondo
