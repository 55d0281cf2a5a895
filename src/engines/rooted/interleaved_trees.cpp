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

/// Two trees are as deep as a binary one, at a full rate; more are wider, and one may be a chain. Those that
/// are most often the shallowest come first.
constexpr std::size_t kNumbersOfTrees[] = {8, 4, 2, 6, 3, 5, 7, 1};
/// Relative; a link that carries a whole number of trees exactly is to carry them.
constexpr double kRoundingOfCapacity = 1e-9;
/// Delays are those of chunks of so many bytes.
constexpr double kBytesOfPipelined = 4e3;
/// Arcs looked at for one tree; and for all, once there are trees that fit.
constexpr double kMostLookedAt = 1e8;
constexpr double kMostLookedAtByAll = 4e8;
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
      tree.reached = {root_};
      tree.left_of_root = of_root / static_cast<int>(num_trees);
    }
  }

  /// Of the trees that have grown: when the last GPU has a small chunk that each hop carries at an even rate.
  double deepest_us() const {
    double deepest = 0;
    std::vector<double> there_us(topology_.num_nodes(), 0);
    for (const Growing& tree : trees_) {
      for (const int a : tree.arcs) {
        const CopyGraph::Arc& arc = graph_.arcs[index(a)];
        double& us = there_us[arc.dst.index()];
        us = (arc.src == root_ ? 0 : there_us[arc.src.index()]) + latency_us(arc) +
             static_cast<double>(trees_.size()) * sending_us(arc);
        deepest = std::max(deepest, us);
      }
    }
    return deepest;
  }

  std::optional<OutTreePacking> run(double busy_us) {
    const std::size_t all = trees_.size() * data_.destinations.size();
    std::size_t by_others = 0;
    for (std::size_t joined = 0; joined < all; ++joined) {
      if (by_others == 0 && join_next(Senders::of_the_tree)) continue;
      if (++by_others > data_.destinations.size() || !join_next(Senders::all_reached)) return std::nullopt;
    }
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
    std::vector<NodeId> reached = {};     ///< in this order, the root first
    int left_of_root = 0;                 ///< arcs from the root that it may still have
  };

  /// GPUs that send in other trees have some room left where their number does not divide.
  enum class Senders { of_the_tree, all_reached };

  bool has_room(const CopyGraph::Arc& arc) const {
    return std::ranges::all_of(arc.links, [&](LinkId l) {
      return std::ranges::all_of(rows_.of(l), [&](int row) { return left_[index(row)] > 0; });
    });
  }

  /// The soonest of all that some tree could reach next, of those that send there if there is one.
  bool join_next(Senders senders) {
    std::tuple<bool, double, std::size_t, int> first{true, kUnreached, 0, 0};
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      const Growing& tree = trees_[t];
      for (const NodeId from : tree.reached) {
        if (from != root_ && senders == Senders::of_the_tree && sends_in_[from.index()] != t) continue;
        if (from == root_ && tree.left_of_root == 0) continue;
        const double from_us = tree.reached_us[from.index()];
        for (const int a : graph_.out[from.index()]) {
          const CopyGraph::Arc& arc = graph_.arcs[index(a)];
          const std::size_t class_of = sends_in_[arc.dst.index()];
          if (tree.reached_us[arc.dst.index()] < kUnreached || class_of == kNowhere) continue;
          const std::tuple candidate{class_of != t, from_us + delay_us(arc), t, a};
          if (candidate < first && has_room(arc)) first = candidate;
        }
      }
    }
    const auto& [is_leaf, there_us, t, a] = first;
    if (there_us == kUnreached) return false;
    const CopyGraph::Arc& arc = graph_.arcs[index(a)];
    for (const LinkId l : arc.links)
      for (const int row : rows_.of(l)) --left_[index(row)];
    Growing& tree = trees_[t];
    if (arc.src == root_) --tree.left_of_root;
    // What sends on does so to one after another.
    tree.reached_us[arc.src.index()] += sending_us(arc);
    tree.reached_us[arc.dst.index()] = there_us;
    tree.arcs.push_back(a);
    tree.reached.push_back(arc.dst);
    return true;
  }

  double sending_us(const CopyGraph::Arc& arc) const {
    return transmission_us(std::min(data_.bytes, kBytesOfPipelined),
                           topology_.link(arc.links.front()).bandwidth_GBps);
  }
  double latency_us(const CopyGraph::Arc& arc) const {
    double us = 0;
    for (const LinkId l : arc.links) us += topology_.link(l).latency_us;
    return us;
  }
  double delay_us(const CopyGraph::Arc& arc) const { return sending_us(arc) + latency_us(arc); }

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
  const double of_one =
      static_cast<double>(graph.arcs.size()) * static_cast<double>(data.destinations.size());
  double looked_at = 0;
  double least_us = kUnreached;
  std::optional<OutTreePacking> shallowest;
  for (const std::size_t trees : kNumbersOfTrees) {
    if (trees > data.destinations.size()) continue;
    looked_at += of_one * static_cast<double>(trees);
    if (shallowest && looked_at > kMostLookedAtByAll) break;
    Interleaver interleaver(topology, graph, data, busy_us, trees);
    auto packing = interleaver.run(busy_us);
    if (!packing || interleaver.deepest_us() >= least_us) continue;
    least_us = interleaver.deepest_us();
    shallowest = std::move(packing);
  }
  return shallowest;
}

}  // namespace rondo
