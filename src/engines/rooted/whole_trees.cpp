#include "whole_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"
#include "tree_growth.hpp"

namespace rondo {
namespace {

constexpr int kMostWholeTrees = 32;
/// Relative; a link that carries a whole number of trees exactly is to carry them.
constexpr double kRoundingOfTrees = 1e-9;
/// Delays are those of so many chunks of a tree.
constexpr double kChunksOfTree = 64;

class WholeTreePacker {
 public:
  WholeTreePacker(const Topology& topology, const CopyGraph& graph, const RootedData& data, double busy_us)
      : topology_(topology),
        graph_(graph),
        root_(topology.node_of(data.root).value),
        data_(data),
        rate_GBps_(transmission_us(data.bytes, 1) / busy_us) {}

  std::optional<OutTreePacking> run(double busy_us) {
    for (int trees = 1; trees <= kMostWholeTrees; ++trees) {
      if (!fits(trees)) continue;
      if (!grow(trees)) return std::nullopt;
      OutTreePacking packing{.busy_us = busy_us};
      for (const Growing& tree : trees_) {
        packing.trees.push_back(tree_of_arcs(topology_, graph_, tree.arcs));
        packing.trees.back().weight = 1.0 / trees;
      }
      return packing;
    }
    return std::nullopt;
  }

 private:
  struct Growing {
    std::vector<int> arcs = {};
    std::vector<double> delay_us = {};  ///< per node; infinity where it is not reached
    std::size_t num_reached = 0;
    std::vector<char> is_refused = {};  ///< per arc: others need it, now and later
  };

  /// Whether so many trees can be packed: each GPU can be reached that often.
  bool fits(int trees) {
    left_.clear();
    std::vector<double> capacity;
    for (const CopyGraph::Arc& arc : graph_.arcs) {
      const double carried = topology_.link(arc.links.front()).bandwidth_GBps / rate_GBps_ * trees;
      left_.push_back(std::min(static_cast<int>(std::floor(carried * (1 + kRoundingOfTrees))), trees));
      capacity.push_back(left_.back());
    }
    Digraph network{static_cast<int>(topology_.num_nodes()), {}};
    for (const CopyGraph::Arc& arc : graph_.arcs) network.arcs.push_back({arc.src.value, arc.dst.value});
    return std::ranges::all_of(data_.destinations, [&](GpuId d) {
      return min_cut(network, capacity, root_, topology_.node_of(d).value).value > trees - 0.5;
    });
  }

  bool grow(int trees) {
    Growing none{.delay_us = std::vector<double>(topology_.num_nodes(), kInfinity),
                 .num_reached = 1,
                 .is_refused = std::vector<char>(graph_.arcs.size(), 0)};
    none.delay_us[index(root_)] = 0;
    trees_.assign(index(trees), none);
    const std::size_t all = data_.destinations.size() + 1;
    for (;;) {
      // The soonest of all that some tree could reach next.
      std::tuple<double, std::size_t, int> first{kInfinity, 0, -1};
      bool is_done = true;
      for (std::size_t t = 0; t < trees_.size(); ++t) {
        if (trees_[t].num_reached == all) continue;
        is_done = false;
        for (std::size_t w = 0; w < graph_.arcs.size(); ++w) {
          if (left_[w] == 0 || trees_[t].is_refused[w]) continue;
          const CopyGraph::Arc& arc = graph_.arcs[w];
          if (trees_[t].delay_us[arc.dst.index()] < kInfinity) continue;
          const double there_us = trees_[t].delay_us[arc.src.index()] + delay_us(arc);
          if (there_us < kInfinity) first = std::min(first, {there_us, t, static_cast<int>(w)});
        }
      }
      if (is_done) return true;
      const auto [there_us, t, w] = first;
      if (w < 0) return false;
      if (!may_join(t, w)) {
        trees_[t].is_refused[index(w)] = 1;
        continue;
      }
      --left_[index(w)];
      Growing& tree = trees_[t];
      tree.arcs.push_back(w);
      tree.delay_us[graph_.arcs[index(w)].dst.index()] = there_us;
      ++tree.num_reached;
    }
  }

  double delay_us(const CopyGraph::Arc& arc) const {
    const Link& link = topology_.link(arc.links.front());
    return link.latency_us + transmission_us(data_.bytes, link.bandwidth_GBps) /
                                 (kChunksOfTree * static_cast<double>(trees_.size()));
  }

  /// Whether all other trees can still be completed.
  bool may_join(std::size_t t, int w) const {
    const CopyGraph::Arc& arc = graph_.arcs[index(w)];
    Digraph network{static_cast<int>(topology_.num_nodes()), {}};
    std::vector<double> capacity;
    const auto add = [&](int src, int dst, double amount) {
      if (src == dst) return;
      network.arcs.push_back({src, dst});
      capacity.push_back(amount);
    };
    for (std::size_t i = 0; i < graph_.arcs.size(); ++i)
      if (left_[i] > 0) add(graph_.arcs[i].src.value, graph_.arcs[i].dst.value, left_[i]);
    int others = 0;
    const std::size_t all = data_.destinations.size() + 1;
    for (std::size_t o = 0; o < trees_.size(); ++o) {
      if (o == t || trees_[o].num_reached == all) continue;
      ++others;
      const int reached = network.num_nodes++;
      add(arc.src.value, reached, 1);
      for (std::size_t n = 0; n < topology_.num_nodes(); ++n)
        if (trees_[o].delay_us[n] < kInfinity) add(reached, static_cast<int>(n), 1);
    }
    return min_cut(network, capacity, arc.src.value, arc.dst.value).value > others + 0.5;
  }

  const Topology& topology_;
  const CopyGraph& graph_;
  int root_;
  const RootedData& data_;
  double rate_GBps_;
  std::vector<int> left_;  ///< per arc: trees that it may still carry
  std::vector<Growing> trees_;
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
