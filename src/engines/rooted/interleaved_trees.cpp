#include "interleaved_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/flows/link_rows.hpp"
#include "tree_growth.hpp"

namespace rondo {
namespace {

/// Two trees are as deep as a binary one, at a full rate; more are wider, and one may be a chain.
constexpr std::size_t kNumbersOfTrees[] = {2, 3, 1, 4, 5, 6, 7, 8};
/// Relative; a link that carries a whole number of trees exactly is to carry them.
constexpr double kRoundingOfCapacity = 1e-9;
/// Delays are those of so many chunks.
constexpr double kChunks = 256;
/// Arcs looked at for one tree.
constexpr double kMostLookedAt = 1e8;
constexpr double kUnreached = std::numeric_limits<double>::infinity();

class Interleaver {
 public:
  Interleaver(const Topology& topology, const CopyGraph& graph, const RootedData& data, double busy_us,
              std::size_t num_trees)
      : topology_(topology),
        graph_(graph),
        data_(data),
        root_(topology.node_of(data.root)),
        rows_(topology, data.bytes),
        sends_in_(topology.num_nodes(), kNowhere),
        trees_(num_trees) {
    const auto trees = static_cast<double>(num_trees);
    for (std::size_t row = 0; row < rows_.count(); ++row) {
      left_.push_back(static_cast<int>(
          std::floor(trees * busy_us / rows_.us(static_cast<int>(row)) * (1 + kRoundingOfCapacity))));
    }
    for (std::size_t i = 0; i < data.destinations.size(); ++i)
      sends_in_[topology.node_of(data.destinations[i]).index()] = i % num_trees;
    int of_root = 0;
    for (const LinkId l : topology.out_links(root_)) of_root += left_[l.index()];
    for (Growing& tree : trees_) {
      tree.reached_us.assign(topology.num_nodes(), kUnreached);
      tree.reached_us[root_.index()] = 0;
      tree.left_of_root = of_root / static_cast<int>(num_trees);
    }
  }

  std::optional<OutTreePacking> run(double busy_us) {
    const std::size_t all = trees_.size() * data_.destinations.size();
    for (std::size_t joined = 0; joined < all; ++joined)
      if (!join_next()) return std::nullopt;
    OutTreePacking packing{.busy_us = busy_us};
    for (const Growing& tree : trees_) {
      packing.trees.push_back(tree_of_arcs(topology_, graph_, tree.arcs));
      packing.trees.back().weight = 1 / static_cast<double>(trees_.size());
    }
    return packing;
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  struct Growing {
    std::vector<int> arcs = {};
    std::vector<double> reached_us = {};  ///< per node; infinity where it is not reached
    int left_of_root = 0;                 ///< arcs from the root that it may still have
  };

  bool has_room(const CopyGraph::Arc& arc) const {
    return std::ranges::all_of(arc.links, [&](LinkId l) {
      return std::ranges::all_of(rows_.of(l), [&](int row) { return left_[index(row)] > 0; });
    });
  }

  /// The soonest of all that some tree could reach next, of those that send there if there is one.
  bool join_next() {
    std::tuple<bool, double, std::size_t, std::size_t> first{true, kUnreached, 0, 0};
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      const Growing& tree = trees_[t];
      for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
        const CopyGraph::Arc& arc = graph_.arcs[a];
        const double from_us = tree.reached_us[arc.src.index()];
        if (from_us == kUnreached || tree.reached_us[arc.dst.index()] < kUnreached) continue;
        if (arc.src == root_ ? tree.left_of_root == 0 : sends_in_[arc.src.index()] != t) continue;
        const std::size_t class_of = sends_in_[arc.dst.index()];
        if (class_of == kNowhere) continue;  // it wants no data
        const std::tuple candidate{class_of != t, from_us + delay_us(arc), t, a};
        if (candidate < first && has_room(arc)) first = candidate;
      }
    }
    const auto& [is_leaf, there_us, t, a] = first;
    if (there_us == kUnreached) return false;
    const CopyGraph::Arc& arc = graph_.arcs[a];
    for (const LinkId l : arc.links)
      for (const int row : rows_.of(l)) --left_[index(row)];
    Growing& tree = trees_[t];
    if (arc.src == root_) --tree.left_of_root;
    // What sends on does so to one after another.
    tree.reached_us[arc.src.index()] += sending_us(arc);
    tree.reached_us[arc.dst.index()] = there_us;
    tree.arcs.push_back(static_cast<int>(a));
    return true;
  }

  double sending_us(const CopyGraph::Arc& arc) const {
    return rows_.us(static_cast<int>(arc.links.front().index())) / kChunks;
  }
  double delay_us(const CopyGraph::Arc& arc) const {
    double us = sending_us(arc);
    for (const LinkId l : arc.links) us += topology_.link(l).latency_us;
    return us;
  }

  const Topology& topology_;
  const CopyGraph& graph_;
  const RootedData& data_;
  NodeId root_;
  LinkRows rows_;
  std::vector<std::size_t> sends_in_;  ///< per node, the tree
  std::vector<Growing> trees_;
  std::vector<int> left_;  ///< per row: arcs that it may still carry
};

}  // namespace

bool may_interleave_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data) {
  const auto is_hop = [&](const CopyGraph::Arc& arc) {
    return topology.is_gpu(arc.src) && topology.is_gpu(arc.dst);
  };
  return static_cast<double>(graph.arcs.size()) * static_cast<double>(data.destinations.size()) <=
             kMostLookedAt &&
         std::ranges::all_of(graph.arcs, is_hop);
}

std::optional<OutTreePacking> interleave_trees(const Topology& topology, const CopyGraph& graph,
                                               const RootedData& data, double busy_us) {
  for (const std::size_t trees : kNumbersOfTrees) {
    if (trees > data.destinations.size()) continue;
    if (auto packing = Interleaver(topology, graph, data, busy_us, trees).run(busy_us)) return packing;
  }
  return std::nullopt;
}

}  // namespace rondo
