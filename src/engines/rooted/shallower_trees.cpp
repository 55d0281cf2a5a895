#include "shallower_trees.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr int kNone = -1;
constexpr int kMostPasses = 64;
/// Relative; of paths that are as long as each other neither is the longer one.
constexpr double kLessBy = 1e-9;

class TreeShaper {
 public:
  TreeShaper(const CopyGraph& graph, NodeId root, const std::vector<int>& carried,
             const std::vector<double>& delay_us, const ArcsOfTrees& trees)
      : graph_(graph), root_(root.index()), delay_us_(delay_us), left_(carried), into_(graph.out.size()) {
    for (std::size_t w = 0; w < graph.arcs.size(); ++w)
      into_[graph.arcs[w].dst.index()].push_back(static_cast<int>(w));
    for (const std::vector<int>& arcs : trees) {
      Tree& tree = trees_.emplace_back(graph.out.size());
      for (const int w : arcs) {
        --left_[index(w)];
        tree.enters[end_of(w)] = w;
        tree.children[start_of(w)].push_back(static_cast<int>(end_of(w)));
      }
      find_depths(tree, root_);
      for (auto w = arcs.rbegin(); w != arcs.rend(); ++w) find_height(tree, start_of(*w));
    }
  }

  ArcsOfTrees run() {
    for (int pass = 0; pass < kMostPasses; ++pass) {
      bool is_shorter = false;
      for (std::size_t node = 0; node < into_.size(); ++node)
        for (std::size_t t = 0; t < trees_.size(); ++t) is_shorter = shorten(t, node) || is_shorter;
      if (!is_shorter) break;
    }
    ArcsOfTrees arcs;
    for (const Tree& tree : trees_) arcs.push_back(arcs_of(tree));
    return arcs;
  }

 private:
  struct Tree {
    explicit Tree(std::size_t nodes)
        : enters(nodes, kNone), depth_us(nodes, 0), height_us(nodes, 0), children(nodes) {}
    std::vector<int> enters;        ///< per node the arc by which it is entered
    std::vector<double> depth_us;   ///< per node, from the root
    std::vector<double> height_us;  ///< per node, to the furthest leaf behind it
    std::vector<std::vector<int>> children;
    double through(std::size_t node) const { return depth_us[node] + height_us[node]; }
  };

  std::size_t start_of(int w) const { return graph_.arcs[index(w)].src.index(); }
  std::size_t end_of(int w) const { return graph_.arcs[index(w)].dst.index(); }

  void find_depths(Tree& tree, std::size_t from) {
    stack_.assign(1, from);
    while (!stack_.empty()) {
      const std::size_t node = stack_.back();
      stack_.pop_back();
      for (const int child : tree.children[node]) {
        tree.depth_us[index(child)] = tree.depth_us[node] + delay_us_[index(tree.enters[index(child)])];
        stack_.push_back(index(child));
      }
    }
  }

  void find_height(Tree& tree, std::size_t node) const {
    double height = 0;
    for (const int child : tree.children[node])
      height = std::max(height, tree.height_us[index(child)] + delay_us_[index(tree.enters[index(child)])]);
    tree.height_us[node] = height;
  }

  void find_heights_up(Tree& tree, std::size_t node) const {
    for (;; node = start_of(tree.enters[node])) {
      const double before = tree.height_us[node];
      find_height(tree, node);
      if (tree.height_us[node] == before || node == root_) return;
    }
  }

  /// Of the longest path through `node`, if arc `w` led there.
  double through_by(const Tree& tree, int w, std::size_t node) const {
    return tree.depth_us[start_of(w)] + delay_us_[index(w)] + tree.height_us[node];
  }

  /// Whether arc `w` starts in the tree and not behind its own end.
  bool may_enter_by(const Tree& tree, int w) const {
    std::size_t at = start_of(w);
    while (at != root_) {
      if (at == end_of(w) || tree.enters[at] == kNone) return false;
      at = start_of(tree.enters[at]);
    }
    return true;
  }

  void enter_by(Tree& tree, int w) {
    const std::size_t node = end_of(w);
    const std::size_t before = start_of(tree.enters[node]);
    std::erase(tree.children[before], static_cast<int>(node));
    tree.enters[node] = w;
    tree.children[start_of(w)].push_back(static_cast<int>(node));
    tree.depth_us[node] = tree.depth_us[start_of(w)] + delay_us_[index(w)];
    find_depths(tree, node);
    find_heights_up(tree, before);
    find_heights_up(tree, start_of(w));
  }

  /// Whether tree `t` now enters `node` by an arc that makes its longest path there shorter.
  bool shorten(std::size_t t, std::size_t node) {
    Tree& tree = trees_[t];
    const int w = tree.enters[node];
    if (w == kNone) return false;
    for (const int other : into_[node]) {
      const double through = tree.through(node);
      if (other == w || !(through_by(tree, other, node) < through * (1 - kLessBy))) continue;
      if (!may_enter_by(tree, other)) continue;
      if (left_[index(other)] > 0) {
        --left_[index(other)];
        ++left_[index(w)];
        enter_by(tree, other);
        return true;
      }
      for (Tree& giver : trees_) {
        if (&giver == &tree || giver.enters[node] != other) continue;
        if (!(through_by(giver, w, node) < through * (1 - kLessBy)) || !may_enter_by(giver, w)) continue;
        enter_by(tree, other);
        enter_by(giver, w);
        return true;
      }
    }
    return false;
  }

  std::vector<int> arcs_of(const Tree& tree) const {
    std::vector<int> arcs;
    std::vector<std::size_t> nodes{root_};
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (const int child : tree.children[nodes[k]]) {
        arcs.push_back(tree.enters[index(child)]);
        nodes.push_back(index(child));
      }
    }
    return arcs;
  }

  const CopyGraph& graph_;
  std::size_t root_;
  const std::vector<double>& delay_us_;
  std::vector<int> left_;  ///< per arc: trees that it may still carry
  std::vector<std::vector<int>> into_;
  std::vector<Tree> trees_;
  std::vector<std::size_t> stack_;
};

}  // namespace

ArcsOfTrees shallower_trees(const CopyGraph& graph, NodeId root, const std::vector<int>& carried,
                            const std::vector<double>& delay_us, const ArcsOfTrees& trees) {
  return TreeShaper(graph, root, carried, delay_us, trees).run();
}

}  // namespace rondo
