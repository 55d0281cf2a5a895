#include "steiner_packing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "link_rows.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr double kPromising = 1e-3;   ///< relative distance of packing and price that is worth more trees
constexpr double kPriceGrowth = 4;    ///< of multiplicative weights, over the greatest load
constexpr int kFirstRounds = 24;      ///< of trees by multiplicative weights, before the first master
constexpr double kEvenShare = 1e-4;   ///< of the prices: keeps paths over links that cost nothing short
constexpr double kShareOfBest = 0.5;  ///< of the best prices so far in those that are used next
constexpr double kShallowness = 0.1;  ///< the part of the cost from the root that counts again
constexpr int kMostVainRounds = 12;   ///< in which no tree is new or the price does not rise

std::vector<SteinerBlock> blocks_of(const Demand& demand) {
  std::map<std::pair<GpuId, std::vector<GpuId>>, SteinerBlock> blocks;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& c = demand.contributions()[i];
    SteinerBlock& block = blocks[{c.origin, c.destinations}];
    block.origin = c.origin;
    block.destinations = c.destinations;
    block.bytes += c.bytes;
    block.contributions.push_back(i);
  }
  std::vector<SteinerBlock> result;
  for (auto& [ends, block] : blocks) result.push_back(std::move(block));
  return result;
}

/// Grows a tree from a GPU: Dijkstra's algorithm from all GPUs of the tree at once. Some of the path from the
/// root counts as well, so that of trees that cost about the same the shallow one is taken: chunks are on
/// their way for less time.
class TreeGrowth {
 public:
  explicit TreeGrowth(const Topology& topology)
      : topology_(topology), distance_(topology.num_nodes()), last_(topology.num_nodes()) {}

  std::vector<std::vector<LinkId>> grow(const SteinerBlock& block, const std::vector<double>& cost) {
    std::set<NodeId> wanting;
    for (const GpuId g : block.destinations) wanting.insert(topology_.node_of(g));
    std::vector<char> in_tree(topology_.num_nodes(), 0);
    from_root_.assign(topology_.num_nodes(), 0);
    in_tree[topology_.node_of(block.origin).index()] = 1;
    std::vector<std::vector<LinkId>> hops;
    while (!wanting.empty()) {
      const NodeId reached = nearest(in_tree, wanting, cost);
      std::vector<std::vector<LinkId>> path;
      for (NodeId node = reached; !in_tree[node.index()];) {
        const LinkId l = last_[node.index()];
        if (topology_.is_gpu(node)) path.emplace_back();
        path.back().push_back(l);
        node = topology_.link(l).src;
      }
      std::ranges::reverse(path);
      for (std::vector<LinkId>& hop : path) {
        std::ranges::reverse(hop);
        const NodeId end = topology_.link(hop.back()).dst;
        in_tree[end.index()] = 1;
        from_root_[end.index()] = distance_[end.index()];
        wanting.erase(end);
        hops.push_back(std::move(hop));
      }
    }
    return hops;
  }

 private:
  NodeId nearest(const std::vector<char>& in_tree, const std::set<NodeId>& wanting,
                 const std::vector<double>& cost) {
    using Entry = std::pair<double, NodeId>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::ranges::fill(distance_, std::numeric_limits<double>::infinity());
    for (std::size_t n = 0; n < in_tree.size(); ++n) {
      if (!in_tree[n]) continue;
      distance_[n] = kShallowness * from_root_[n];
      open.emplace(distance_[n], NodeId(n));
    }
    while (!open.empty()) {
      const auto [far, node] = open.top();
      open.pop();
      if (far > distance_[node.index()]) continue;
      if (wanting.contains(node)) return node;
      for (const LinkId l : topology_.out_links(node)) {
        const NodeId next = topology_.link(l).dst;
        const double there = far + cost[l.index()];
        if (!(there < distance_[next.index()])) continue;
        distance_[next.index()] = there;
        last_[next.index()] = l;
        open.emplace(there, next);
      }
    }
    throw Error(ExitCode::internal, "a destination cannot be reached");
  }

  const Topology& topology_;
  std::vector<double> distance_;
  std::vector<LinkId> last_;
  std::vector<double> from_root_;  ///< per GPU of the tree, what its path there counted for
};

class SteinerLoop {
 public:
  SteinerLoop(const Topology& topology, const Demand& demand, const MakeColumnMaster& make_master)
      : growth_(topology), rows_(topology) {
    packing_.blocks = blocks_of(demand);
    known_.resize(packing_.blocks.size());
    even_.assign(rows_.count(), 1 / static_cast<double>(rows_.count()));
    double bytes = 0;
    for (const SteinerBlock& block : packing_.blocks) bytes += block.bytes;
    unit_us_ = bytes * rows_.least_us_per_byte();
    master_ = make_master(static_cast<int>(rows_.count()), static_cast<int>(packing_.blocks.size()));
  }

  SteinerPacking run(int most_iterations, const Deadline& deadline) {
    first_trees(deadline);
    MasterSolution solution = master_->solve({});
    std::vector<double> best = even_;
    double best_price = 0;
    int vain = 0;
    while (solution.status == SolveStatus::optimal && packing_.iterations < most_iterations &&
           vain < kMostVainRounds && solution.theta > best_price * (1 + kPromising) && !deadline.is_over()) {
      const std::vector<double> own = mixed(solution.row_price, even_, kEvenShare);
      const std::vector<double> price = mixed(own, best, kShareOfBest);
      const Round round = add_trees(price);
      const bool rises = round.price > best_price;
      if (rises) {
        best_price = round.price;
        best = price;
      }
      const bool is_new = round.num_new > 0 || add_trees(own).num_new > 0;
      vain = rises && is_new ? 0 : vain + 1;
      if (!is_new && !rises) break;
      solution = master_->solve({});
      ++packing_.iterations;
    }
    return result(solution);
  }

 private:
  struct Column {
    std::size_t block;
    std::vector<std::vector<LinkId>> hops;
  };
  struct Round {
    int num_new = 0;
    double price = 0;  ///< of all trees: were they the cheapest, no packing would take less
  };

  static std::vector<double> mixed(std::vector<double> a, const std::vector<double>& b, double share_of_b) {
    const double sum = std::accumulate(a.begin(), a.end(), 0.0);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = (sum > 0 ? (1 - share_of_b) * a[i] / sum : 0) + share_of_b * b[i];
    return a;
  }

  std::map<int, double> loads(const Column& column) const {
    std::map<int, double> load;
    const double bytes = packing_.blocks[column.block].bytes;
    for (const auto& hop : column.hops) {
      for (const LinkId l : hop) {
        for (const int row : rows_.of(l)) load[row] += bytes * rows_.us_per_byte(row) / unit_us_;
      }
    }
    return load;
  }

  /// Returns the loads.
  std::map<int, double> add_tree(std::size_t block, const std::vector<double>& cost, Round& round) {
    Column column{block, growth_.grow(packing_.blocks[block], cost)};
    MasterColumn in_master{.block = static_cast<int>(block)};
    std::map<int, double> load = loads(column);
    for (const auto& [row, share] : load) {
      in_master.rows.push_back(row);
      in_master.loads.push_back(share);
    }
    auto key = column.hops;
    std::ranges::sort(key);
    if (known_[block].insert(std::move(key)).second) {
      ++round.num_new;
      master_->add({in_master});
      columns_.push_back(std::move(column));
    }
    return load;
  }

  Round add_trees(const std::vector<double>& price) {
    Round round;
    const std::vector<double> cost = rows_.link_costs(price);
    for (std::size_t b = 0; b < packing_.blocks.size(); ++b) {
      for (const auto& [row, share] : add_tree(b, cost, round)) round.price += price[index(row)] * share;
    }
    return round;
  }

  /// Prices that grow with the loads so far spread the first trees over all links.
  void first_trees(const Deadline& deadline) {
    Round round;
    std::vector<double> load(rows_.count(), 0);
    for (int i = 0; i < kFirstRounds && (i == 0 || !deadline.is_over()); ++i) {
      for (std::size_t b = 0; b < packing_.blocks.size(); ++b) {
        const double most = *std::ranges::max_element(load);
        std::vector<double> price(load.size(), 1);
        for (std::size_t r = 0; r < load.size() && most > 0; ++r)
          price[r] = std::exp(kPriceGrowth * (load[r] / most - 1));
        for (const auto& [row, share] : add_tree(b, rows_.link_costs(mixed(price, even_, kEvenShare)), round))
          load[index(row)] += share;
      }
    }
  }

  SteinerPacking result(const MasterSolution& solution) {
    if (solution.weight.size() != columns_.size())
      throw Error(ExitCode::internal, "the master of the packing was not solved");
    packing_.busy_us = solution.theta * unit_us_;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (solution.weight[c] > 1e-9)
        packing_.blocks[columns_[c].block].trees.push_back({solution.weight[c], std::move(columns_[c].hops)});
    }
    for (SteinerBlock& block : packing_.blocks)
      std::ranges::stable_sort(block.trees, std::greater<>{}, &SteinerTree::weight);
    return std::move(packing_);
  }

  TreeGrowth growth_;
  LinkRows rows_;
  SteinerPacking packing_;
  std::vector<double> even_;
  double unit_us_ = 1;
  std::unique_ptr<ColumnMaster> master_;
  std::vector<Column> columns_;
  std::vector<std::set<std::vector<std::vector<LinkId>>>> known_;  ///< per block
};

}  // namespace

SteinerPacking pack_steiner_trees(const Topology& topology, const Demand& demand,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline) {
  return SteinerLoop(topology, demand, make_master).run(most_iterations, deadline);
}

}  // namespace rondo
