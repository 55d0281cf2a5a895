#include "whole_trees.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"
#include "shallower_trees.hpp"
#include "tree_growth.hpp"

namespace rondo {
namespace {

constexpr int kMostWholeTrees = 32;
/// Relative; a link that carries a whole number of trees exactly is to carry them.
constexpr double kRoundingOfTrees = 1e-9;
/// Delays are those of so many chunks of a tree.
constexpr double kChunksOfTree = 64;

/// Arcs that trees may still take, and whether one may go to one tree without making the others impossible.
///
/// The trees that still grow can all be completed as long as every node can be reached from them by disjoint
/// paths, one a tree that has not reached it (Berczi and Frank, 2010). Taking an arc for a tree can break
/// this only where paths enter the arc's end: as many as other trees grow have to be left, each from another
/// tree or from the arc's start. They are looked for backwards from that end, where the trees are near.
class ArcsLeft {
 public:
  ArcsLeft(const Topology& topology, const CopyGraph& graph, std::vector<int> left, std::size_t num_trees)
      : graph_(graph),
        left_(std::move(left)),
        into_(topology.num_nodes()),
        has_reached_(num_trees, std::vector<char>(topology.num_nodes(), 0)),
        flow_(left_.size(), 0),
        entry_(num_trees, -1),
        seen_(topology.num_nodes() + num_trees, 0),
        next_(topology.num_nodes() + num_trees) {
    for (std::size_t w = 0; w < graph.arcs.size(); ++w)
      into_[graph.arcs[w].dst.index()].push_back(static_cast<int>(w));
  }

  bool is_left(std::size_t w) const { return left_[w] > 0; }
  bool has_reached(std::size_t tree, NodeId node) const { return has_reached_[tree][node.index()] != 0; }
  void reach(std::size_t tree, NodeId node) { has_reached_[tree][node.index()] = 1; }
  void take(std::size_t w) { --left_[w]; }

  /// `growing`: the trees other than the one that wants arc `w` and are not complete.
  bool may_take(std::size_t w, const std::vector<std::size_t>& growing) {
    const NodeId src = graph_.arcs[w].src, dst = graph_.arcs[w].dst;
    bool is_enough = true;
    for (std::size_t paths = 0; paths <= growing.size() && is_enough; ++paths)
      is_enough = adds_path(src.index(), dst.index(), growing);
    for (const std::size_t changed : with_flow_) flow_[changed] = 0;
    with_flow_.clear();
    for (const std::size_t tree : growing) entry_[tree] = -1;
    return is_enough;
  }

 private:
  /// How a vertex goes on towards the end: by an arc of the graph, forwards (0, 1, ...) or against the flow
  /// on it (-1, -2, ...), or from a tree to the node `to`.
  struct Step {
    int arc;
    std::size_t to;
  };
  static constexpr int kFromTree = std::numeric_limits<int>::max();
  static constexpr int kBackToTree = kFromTree - 1;

  /// One more path of unit flow to `dst`; vertices are nodes, then trees.
  bool adds_path(std::size_t src, std::size_t dst, const std::vector<std::size_t>& growing) {
    ++search_;
    queue_.assign(1, dst);
    seen_[dst] = search_;
    const std::size_t num_nodes = into_.size();
    const auto see = [&](std::size_t vertex, Step step) {
      if (seen_[vertex] == search_) return;
      seen_[vertex] = search_;
      next_[vertex] = step;
      queue_.push_back(vertex);
    };
    for (std::size_t k = 0; k < queue_.size(); ++k) {
      const std::size_t v = queue_[k];
      if (v == src || (v >= num_nodes && entry_[v - num_nodes] < 0)) {
        push_flow(v, dst);
        return true;
      }
      if (v >= num_nodes) {
        see(index(entry_[v - num_nodes]), {kBackToTree, v});
        continue;
      }
      for (const std::size_t tree : growing) {
        if (has_reached_[tree][v] && entry_[tree] != static_cast<int>(v))
          see(num_nodes + tree, {kFromTree, v});
      }
      for (const int w : into_[v]) {
        if (left_[index(w)] > flow_[index(w)]) see(graph_.arcs[index(w)].src.index(), {w, v});
      }
      for (const int w : graph_.out[v]) {
        if (flow_[index(w)] > 0) see(graph_.arcs[index(w)].dst.index(), {-1 - w, v});
      }
    }
    return false;
  }

  void push_flow(std::size_t v, std::size_t dst) {
    const std::size_t num_nodes = into_.size();
    while (v != dst) {
      const auto [arc, to] = next_[v];
      if (arc == kFromTree) {
        entry_[v - num_nodes] = static_cast<int>(to);
      } else if (arc >= 0 && arc != kBackToTree) {
        if (flow_[index(arc)]++ == 0) with_flow_.push_back(index(arc));
      } else if (arc < 0) {
        --flow_[index(-1 - arc)];
      }
      v = to;
    }
  }

  const CopyGraph& graph_;
  std::vector<int> left_;  ///< per arc: trees that it may still carry
  std::vector<std::vector<int>> into_;
  std::vector<std::vector<char>> has_reached_;  ///< per tree and node

  // Of one question.
  std::vector<int> flow_;
  std::vector<std::size_t> with_flow_;
  std::vector<int> entry_;  ///< per tree: the node by which its path leaves it, or -1

  // Of one path.
  int search_ = 0;
  std::vector<int> seen_;  ///< per vertex: the last search that met it
  std::vector<Step> next_;
  std::vector<std::size_t> queue_;
};

class WholeTreePacker {
 public:
  WholeTreePacker(const Topology& topology, const CopyGraph& graph, const RootedData& data, double busy_us)
      : topology_(topology),
        graph_(graph),
        root_(topology.node_of(data.root)),
        data_(data),
        rate_GBps_(transmission_us(data.bytes, 1) / busy_us) {}

  std::optional<OutTreePacking> run(double busy_us) {
    for (int trees = 1; trees <= kMostWholeTrees; ++trees) {
      const std::vector<int> carried = carried_by_arcs(trees);
      if (!fits(trees, carried)) continue;
      const auto grown = grow(index(trees), carried);
      if (!grown) return std::nullopt;
      std::vector<double> delays_us;
      for (const CopyGraph::Arc& arc : graph_.arcs) delays_us.push_back(delay_us(arc, index(trees)));
      OutTreePacking packing{.busy_us = busy_us};
      for (const std::vector<int>& arcs : shallower_trees(graph_, root_, carried, delays_us, *grown)) {
        packing.trees.push_back(tree_of_arcs(topology_, graph_, arcs));
        packing.trees.back().weight = 1.0 / trees;
      }
      return packing;
    }
    return std::nullopt;
  }

 private:
  /// Trees that each arc can carry within the time.
  std::vector<int> carried_by_arcs(int trees) const {
    std::vector<int> carried;
    for (const CopyGraph::Arc& arc : graph_.arcs) {
      const double most = topology_.link(arc.links.front()).bandwidth_GBps / rate_GBps_ * trees;
      carried.push_back(std::min(static_cast<int>(std::floor(most * (1 + kRoundingOfTrees))), trees));
    }
    return carried;
  }

  /// Whether each GPU can be reached that often; of many GPUs, some are asked.
  bool fits(int trees, const std::vector<int>& carried) const {
    Digraph network{static_cast<int>(topology_.num_nodes()), {}};
    for (const CopyGraph::Arc& arc : graph_.arcs) network.arcs.push_back({arc.src.value, arc.dst.value});
    const std::vector<double> capacity(carried.begin(), carried.end());
    const std::size_t step = data_.destinations.size() / kMostCutDestinations + 1;
    for (std::size_t d = 0; d < data_.destinations.size(); d += step) {
      const int target = topology_.node_of(data_.destinations[d]).value;
      if (min_cut(network, capacity, root_.value, target).value < trees - 0.5) return false;
    }
    return true;
  }

  /// Per tree its arcs, each after the one before it on its path; nothing where the trees cannot be
  /// completed.
  std::optional<ArcsOfTrees> grow(std::size_t trees, const std::vector<int>& carried) const {
    ArcsLeft left(topology_, graph_, carried, trees);
    ArcsOfTrees arcs(trees);
    std::vector<std::size_t> growing;
    using Candidate = std::tuple<double, std::size_t, int>;  // when it is there, tree, arc
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
    const auto reach = [&](std::size_t tree, NodeId node, double there_us) {
      left.reach(tree, node);
      for (const int w : graph_.out[node.index()])
        candidates.emplace(there_us + delay_us(graph_.arcs[index(w)], trees), tree, w);
    };
    const std::size_t all = data_.destinations.size();
    for (std::size_t t = 0; t < trees && all > 0; ++t) {
      growing.push_back(t);
      reach(t, root_, 0);
    }
    while (!growing.empty() && !candidates.empty()) {
      const auto [there_us, tree, w] =
          candidates.top();  // the soonest of all that some tree could reach next
      candidates.pop();
      const NodeId node = graph_.arcs[index(w)].dst;
      if (!left.is_left(index(w)) || left.has_reached(tree, node)) continue;
      std::vector<std::size_t> others = growing;
      std::erase(others, tree);
      if (!left.may_take(index(w), others)) continue;  // others need it, now and later
      left.take(index(w));
      arcs[tree].push_back(w);
      if (arcs[tree].size() == all) growing = others;
      reach(tree, node, there_us);
    }
    if (!growing.empty()) return std::nullopt;
    return arcs;
  }

  double delay_us(const CopyGraph::Arc& arc, std::size_t trees) const {
    const Link& link = topology_.link(arc.links.front());
    return link.latency_us +
           transmission_us(data_.bytes, link.bandwidth_GBps) / (kChunksOfTree * static_cast<double>(trees));
  }

  const Topology& topology_;
  const CopyGraph& graph_;
  NodeId root_;
  const RootedData& data_;
  double rate_GBps_;
};

}  // namespace

bool may_have_whole_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data) {
  return topology.num_gpus() == topology.num_nodes() && topology.num_gpus() <= kMostGpusOfWholeTrees &&
         data.destinations.size() + 1 == topology.num_gpus() && topology.shared_bandwidth().empty() &&
         graph.arcs.size() == topology.num_links();
}

std::optional<OutTreePacking> pack_whole_trees(const Topology& topology, const CopyGraph& graph,
                                               const RootedData& data, double busy_us) {
  return WholeTreePacker(topology, graph, data, busy_us).run(busy_us);
}

}  // namespace rondo
