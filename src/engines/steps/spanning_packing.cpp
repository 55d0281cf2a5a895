#include "spanning_packing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "rondo/core/index.hpp"
#include "rondo/flows/link_rows.hpp"
#include "tree_makers.hpp"

namespace rondo {
namespace {

constexpr double kEnough = 1e-4;        ///< relative distance of packing and bound that ends the columns
constexpr double kSharpness = 0.5;      ///< growth of the prices of multiplicative weights
constexpr double kUniformShare = 1e-6;  ///< of the prices: keeps paths over links that cost nothing short
constexpr double kOldShare = 0.5;       ///< of the best prices so far in those that are priced next

std::vector<double> normalised(std::vector<double> price) {
  const double sum = std::accumulate(price.begin(), price.end(), 0.0);
  const double uniform = 1 / static_cast<double>(price.size());
  for (double& p : price)
    p = (sum > 0 ? (1 - kUniformShare) * p / sum : 0) + (sum > 0 ? kUniformShare : 1) * uniform;
  return price;
}

class PackingLoop {
 public:
  PackingLoop(const Topology& topology, TreeMaker& trees, const MakeColumnMaster& make_master, LinkUse use)
      : use_(use), rows_(topology), trees_(trees), master_(make_master(static_cast<int>(rows_.count()), 1)) {
    // The greatest load of one tree is about 1, whatever the bandwidths.
    const std::vector<double> even = normalised(std::vector<double>(rows_.count(), 1.0));
    double cost = 0;
    for (const auto& [row, load] : loads(trees_.cheapest(even, 0, cost))) unit_ = std::max(unit_, load);
  }

  SpanningPacking run(int most_iterations, const Deadline& deadline) {
    warm_up(std::min(most_iterations, kWarmUp), deadline);
    std::vector<double> best_price = normalised(std::vector<double>(rows_.count(), 1.0));
    MasterSolution solution;
    for (; iteration_ < most_iterations; ++iteration_) {
      solution = master_->solve({});
      const bool is_optimum = trees_.is_exact() && solution.theta * unit_ <= greatest_cost_ * (1 + kEnough);
      if (solution.status != SolveStatus::optimal || is_optimum || deadline.is_over()) break;
      std::vector<double> price = normalised(solution.row_price);
      for (std::size_t r = 0; r < price.size(); ++r)
        price[r] = (1 - kOldShare) * price[r] + kOldShare * best_price[r];
      const double before = greatest_cost_;
      const bool is_new = add_tree(price);
      if (greatest_cost_ > before) best_price = price;
      // Trees that need not be the cheapest at mixed prices may miss what the master's own ask for.
      const bool asks_twice = !is_new || !trees_.is_exact();
      const bool is_new_at_own = asks_twice && add_tree(normalised(solution.row_price));
      if (!is_new && !is_new_at_own) break;
    }
    if (solution.weight.size() != columns_.size()) solution = master_->solve({});
    return result(solution);
  }

 private:
  /// Prices that grow with the loads so far spread the first trees over all links.
  void warm_up(int most_trees, const Deadline& deadline) {
    std::vector<double> load(rows_.count(), 0);
    const int rounds = static_cast<int>(std::min(rows_.count(), index(most_trees)));
    for (int i = 0; i < rounds && (i == 0 || !deadline.is_over()); ++i) {
      const double most = *std::ranges::max_element(load);
      std::vector<double> price(load.size());
      for (std::size_t r = 0; r < load.size(); ++r)
        price[r] = std::exp(kSharpness * (load[r] - most) / unit_);
      add_tree(normalised(std::move(price)));
      for (const auto& [row, added] : loads(last_)) load[index(row)] += added;
    }
  }

  /// Of sums that come in along the tree and results that go out, each once.
  std::map<int, double> loads(const WeightedTree& tree) const {
    std::map<int, double> load;
    const auto add = [&](const MemberArc& arc) {
      const double slowest_us = use_ == LinkUse::whole ? rows_.slowest_us(arc.links) : 0;
      for (const LinkId l : arc.links) {
        for (const int row : rows_.of(l)) load[row] += rows_.us(row, slowest_us);
      }
    };
    // What is listed both ways is used one way by sums and the other way by results.
    for (const MemberArc& arc : tree.gather) add(arc);
    if (tree.root >= 0) {
      for (const MemberArc& arc : tree.spread) add(arc);
    }
    return load;
  }

  bool add_tree(const std::vector<double>& price) {
    double cost = 0;
    last_ = trees_.cheapest(price, ++salt_, cost);
    greatest_cost_ = std::max(greatest_cost_, cost);
    std::vector<std::pair<int, int>> arcs{{last_.root, last_.root}};
    for (const MemberArc& arc : last_.gather) arcs.emplace_back(arc.from, arc.to);
    std::ranges::sort(arcs);
    const auto spreading = static_cast<std::ptrdiff_t>(arcs.size());
    for (const MemberArc& arc : last_.spread) arcs.emplace_back(arc.from, arc.to);
    std::sort(arcs.begin() + spreading, arcs.end());
    MasterColumn column;
    std::vector<LinkId> links;
    for (const auto& [row, load] : loads(last_)) {
      column.rows.push_back(row);
      column.loads.push_back(load / unit_);
    }
    if (!known_.emplace(std::pair(arcs, column.rows), columns_.size()).second) return false;
    master_->add({column});
    columns_.push_back(last_);
    return true;
  }

  SpanningPacking result(const MasterSolution& solution) {
    SpanningPacking packing;
    packing.us_per_byte = solution.theta * unit_;
    if (trees_.is_exact()) packing.bound_us_per_byte = greatest_cost_;
    packing.iterations = iteration_;
    for (std::size_t c = 0; c < columns_.size() && c < solution.weight.size(); ++c) {
      if (solution.weight[c] <= 1e-9) continue;
      packing.trees.push_back(std::move(columns_[c]));
      packing.trees.back().weight = solution.weight[c];
    }
    std::ranges::stable_sort(packing.trees, std::greater<>{}, &WeightedTree::weight);
    return packing;
  }

  static constexpr int kWarmUp = 200;

  LinkUse use_;
  LinkRows rows_;
  TreeMaker& trees_;
  std::unique_ptr<ColumnMaster> master_;
  double unit_ = 0;
  double greatest_cost_ = 0;  ///< of a cheapest tree, at whatever prices; us a byte
  int iteration_ = 0;
  std::uint64_t salt_ = 0;
  WeightedTree last_;
  std::vector<WeightedTree> columns_;
  std::map<std::pair<std::vector<std::pair<int, int>>, std::vector<int>>, std::size_t> known_;
};

}  // namespace

SpanningPacking pack_spanning_trees(const Topology& topology, const std::vector<GpuId>& members,
                                    const MakeColumnMaster& make_master, int most_iterations,
                                    const Deadline& deadline, LinkUse use) {
  const auto trees = make_spanning_trees(topology, members, use);
  return PackingLoop(topology, *trees, make_master, use).run(most_iterations, deadline);
}

SpanningPacking pack_rooted_trees(const Topology& topology, const std::vector<GpuId>& members,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline, LinkUse use) {
  const auto trees = make_rooted_trees(topology, members, use);
  return PackingLoop(topology, *trees, make_master, use).run(most_iterations, deadline);
}

SpanningPacking pack_relay_trees(const Topology& topology, const std::vector<GpuId>& members,
                                 const MakeColumnMaster& make_master, int most_iterations,
                                 const Deadline& deadline, LinkUse use) {
  const auto trees = make_relay_trees(topology, members, use);
  return PackingLoop(topology, *trees, make_master, use).run(most_iterations, deadline);
}

}  // namespace rondo
