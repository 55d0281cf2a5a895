#include "rondo/flows/steiner_packing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "dual_ascent.hpp"
#include "period_graph.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/flows/link_rows.hpp"
#include "steiner_blocks.hpp"
#include "tree_growth.hpp"

namespace rondo {
namespace {

constexpr double kPromising = 5e-4;   ///< relative distance of packing and bound that is worth more trees
constexpr double kPriceGrowth = 4;    ///< of multiplicative weights, over the greatest load
constexpr int kFirstRounds = 24;      ///< of trees by multiplicative weights, before the first master
constexpr double kEvenShare = 1e-4;   ///< of the prices: keeps paths over links that cost nothing short
constexpr double kShareOfBest = 0.5;  ///< of the best prices so far in those that are used next
constexpr int kMostVainRounds = 100;  ///< in which the bound does not rise
/// Of the even prices, those of periods before the last, which first trees leave free.
constexpr double kEarlyShare = 1e-3;
/// Links looked at for destinations in all iterations together; the fewest that there are in any case.
constexpr double kMostPackingWork = 3e7;
constexpr double kFewestMasters = 12;
/// Of the greatest length: shares below it are left out.
constexpr double kLeastShare = 1e-9;

/// Undoes what rounding has added: shares sum to no more than the whole.
void keep_within(const std::vector<double>& whole, SteinerPrice& price) {
  std::vector<double> sums(whole.size(), 0);
  for (const auto& shares : price.shares) {
    for (const auto& [arc, cost] : shares) sums[arc] += cost;
  }
  for (auto& shares : price.shares) {
    for (auto& [arc, cost] : shares) {
      if (sums[arc] > whole[arc]) cost *= whole[arc] / sums[arc];
    }
  }
}

class SteinerLoop {
 public:
  SteinerLoop(const Topology& topology, const Demand& demand, const MakeColumnMaster& make_master)
      : topology_(topology),
        blocks_(steiner_blocks(demand)),
        from_us_(period_begins(blocks_)),
        graph_(topology, from_us_.size()),
        rows_(topology),
        growth_(topology, graph_),
        ascent_(graph_),
        known_(blocks_.size()) {
    const std::size_t num_rows = from_us_.size() * rows_.count();
    even_.assign(num_rows, 1 / static_cast<double>(rows_.count()));
    for (std::size_t row = 0; row < last_rows(); ++row) even_[row] *= kEarlyShare;
    best_ = even_;
    double bytes = 0;
    for (const SteinerBlock& block : blocks_) bytes += block.bytes;
    unit_us_ = bytes * rows_.least_us();
    master_ = make_master(static_cast<int>(num_rows), static_cast<int>(blocks_.size()));
    for (std::size_t row = 0; row < last_rows(); ++row)
      master_->limit_row(static_cast<int>(row), length_us(row / rows_.count()) / unit_us_);
  }

  SteinerPacking run(int most_iterations, const Deadline& deadline) {
    first_trees(deadline);
    solution_ = master_->solve({});
    add_columns(most_iterations, deadline);
    if (last_rows() > 0 && is_unproven() && !deadline.is_over()) {
      // One tree at a time, early periods fill slowly.
      first_trees_over_time(solution_.theta, deadline);
      solution_ = master_->solve({});
      add_columns(most_iterations, deadline);
    }
    SteinerPacking packing = result(solution_);
    packing.iterations = iterations_;
    packing.prices = certificate(best_);
    return packing;
  }

 private:
  struct Column {
    std::size_t block;
    std::vector<SteinerHop> hops;
  };
  struct Round {
    int num_new = 0;
    double bound = 0;  ///< no packing takes less
  };

  bool is_unproven() const {
    return solution_.status == SolveStatus::optimal && is_apart(solution_.theta, best_bound_);
  }

  /// Until packing and bound meet, or neither has moved for long.
  void add_columns(int most_iterations, const Deadline& deadline) {
    double theta = solution_.theta;
    int vain = 0;
    while (is_unproven() && iterations_ < most_iterations && vain < kMostVainRounds && !deadline.is_over()) {
      const std::vector<double> own = mixed(solution_.row_price, even_, kEvenShare);
      // Where prices near the best ones prove no more, those of the master may.
      const std::vector<double> price = vain % 2 == 0 ? mixed(own, best_, kShareOfBest) : own;
      const Round round = add_trees(price);
      bool rises = round.bound > best_bound_;
      if (rises) {
        best_bound_ = round.bound;
        best_ = price;
      }
      const Round of_own = round.num_new > 0 ? Round{.bound = best_bound_} : add_trees(own);
      if (of_own.bound > best_bound_) {
        best_bound_ = of_own.bound;
        best_ = own;
        rises = true;
      }
      const bool is_new = round.num_new > 0 || of_own.num_new > 0;
      vain = rises ? 0 : vain + 1;
      if (!is_new && !rises) break;
      solution_ = master_->solve({});
      ++iterations_;
      if (is_apart(theta, solution_.theta)) {
        theta = solution_.theta;
        vain = 0;
      }
    }
  }

  std::size_t last_rows() const { return (from_us_.size() - 1) * rows_.count(); }
  double length_us(std::size_t period) const { return from_us_[period + 1] - from_us_[period]; }
  std::size_t period_of(double ready_us) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(from_us_, ready_us) - from_us_.begin()) - 1;
  }
  bool is_apart(double theta, double bound) const {
    return theta - bound > kPromising * (theta + from_us_.back() / unit_us_);
  }

  /// Prices of the last period's rows sum to 1.
  std::vector<double> mixed(std::vector<double> a, const std::vector<double>& b, double share_of_b) const {
    return mixed_prices(std::move(a), b, share_of_b, last_rows());
  }

  std::map<int, double> loads(const Column& column) const {
    std::map<int, double> load;
    const double bytes = blocks_[column.block].bytes;
    for (const SteinerHop& hop : column.hops) {
      const int first = static_cast<int>(hop.period * rows_.count());
      for (const LinkId l : hop.links) {
        for (const int row : rows_.of(l)) load[first + row] += bytes * rows_.us(row) / unit_us_;
      }
    }
    return load;
  }

  std::vector<double> arc_costs(const std::vector<double>& price) const {
    std::vector<double> costs;
    for (std::size_t p = 0; p < from_us_.size(); ++p) {
      const auto cost = rows_.link_costs(std::span(price).subspan(p * rows_.count(), rows_.count()));
      costs.insert(costs.end(), cost.begin(), cost.end());
    }
    return costs;
  }

  SteinerPrice price_of(const SteinerBlock& block, const std::vector<double>& cost) {
    std::vector<std::size_t> ends;
    for (const GpuId g : block.destinations)
      ends.push_back(graph_.node(topology_.node_of(g), from_us_.size() - 1));
    return ascent_.run(graph_.node(topology_.node_of(block.origin), period_of(block.ready_us)), ends, cost);
  }

  std::vector<SteinerHop> grown(const SteinerBlock& block, std::size_t period,
                                const std::vector<double>& cost) {
    auto hops = growth_.grow(block, period, cost);
    if (!hops) throw Error(ExitCode::internal, "a destination cannot be reached");
    return std::move(*hops);
  }

  /// Returns the loads.
  std::map<int, double> add(std::size_t block, std::vector<SteinerHop> hops, Round& round) {
    Column column{block, std::move(hops)};
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
    const std::vector<double> cost = arc_costs(price);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const SteinerBlock& block = blocks_[b];
      const std::size_t period = period_of(block.ready_us);
      round.bound += block.bytes * price_of(block, cost).least / unit_us_;
      add(b, grown(block, period, cost), round);
      if (block.destinations.size() == 1) continue;
      std::vector<double> of_free = cost;
      for (std::size_t arc = 0; arc < cost.size(); ++arc) {
        if (ascent_.left()[arc] > 0) of_free[arc] = std::numeric_limits<double>::infinity();
      }
      // What dual ascent leaves free may wait in switches.
      if (auto tree = growth_.grow(block, period, of_free)) add(b, std::move(*tree), round);
    }
    for (std::size_t row = 0; row < last_rows(); ++row)
      round.bound -= price[row] * length_us(row / rows_.count()) / unit_us_;
    return round;
  }

  /// In the last period, where there is room for all.
  void first_trees(const Deadline& deadline) {
    const std::size_t last = from_us_.size() - 1;
    spread_trees([last](const SteinerBlock&) { return last; }, std::vector<double>(even_.size(), 1),
                 deadline);
  }

  /// In all periods, of which the last is as long as it takes without the others.
  void first_trees_over_time(double theta, const Deadline& deadline) {
    std::vector<double> room(even_.size(), std::max(theta, kPromising));
    for (std::size_t row = 0; row < last_rows(); ++row) room[row] = length_us(row / rows_.count()) / unit_us_;
    spread_trees([this](const SteinerBlock& block) { return period_of(block.ready_us); }, room, deadline);
  }

  /// Prices that grow with the loads so far, as parts of the `room` of their rows, spread trees over all
  /// links.
  void spread_trees(const std::function<std::size_t(const SteinerBlock&)>& first_period,
                    const std::vector<double>& room, const Deadline& deadline) {
    Round round;
    std::vector<double> load(even_.size(), 0);
    for (int i = 0; i < kFirstRounds && (i == 0 || !deadline.is_over()); ++i) {
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const double most = *std::ranges::max_element(load);
        std::vector<double> price(load.size());
        for (std::size_t r = 0; r < load.size(); ++r)
          price[r] = (most > 0 ? std::exp(kPriceGrowth * (load[r] / most - 1)) : 1) / room[r];
        const auto hops =
            grown(blocks_[b], first_period(blocks_[b]), arc_costs(mixed(price, even_, kEvenShare)));
        for (const auto& [row, share] : add(b, hops, round)) load[index(row)] += share / room[index(row)];
      }
    }
  }

  SteinerPacking result(const MasterSolution& solution) {
    if (solution.weight.size() != columns_.size())
      throw Error(ExitCode::internal, "the master of the packing was not solved");
    SteinerPacking packing{.from_us = from_us_, .blocks = blocks_};
    packing.busy_us = from_us_.back() + solution.theta * unit_us_;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (solution.weight[c] > 1e-9)
        packing.blocks[columns_[c].block].trees.push_back({solution.weight[c], std::move(columns_[c].hops)});
    }
    const auto last_period = [](const SteinerTree& tree) {
      return std::ranges::max(tree.hops, {}, &SteinerHop::period).period;
    };
    for (SteinerBlock& block : packing.blocks) {
      std::ranges::stable_sort(block.trees, std::greater<>{}, &SteinerTree::weight);
      std::ranges::stable_sort(block.trees, {}, last_period);
    }
    return packing;
  }

  MetricCertificate certificate(const std::vector<double>& price) {
    MetricCertificate metric{.length = arc_costs(price), .from_us = from_us_};
    const double least = kLeastShare * *std::ranges::max_element(metric.length);
    std::set<std::pair<GpuId, std::vector<GpuId>>> told;
    for (const SteinerBlock& block : blocks_) {
      if (block.destinations.size() == 1 || !told.emplace(block.origin, block.destinations).second) continue;
      const auto datum = static_cast<std::int32_t>(metric.data.size());
      metric.data.push_back({block.origin, block.destinations});
      SteinerPrice shares = price_of(block, metric.length);
      keep_within(metric.length, shares);
      for (std::size_t t = 0; t < block.destinations.size(); ++t) {
        for (const auto& [arc, cost] : shares.shares[t]) {
          if (cost > least)
            metric.shares.push_back({datum, block.destinations[t], static_cast<std::int32_t>(arc), cost});
        }
      }
    }
    return metric;
  }

  const Topology& topology_;
  std::vector<SteinerBlock> blocks_;
  std::vector<double> from_us_;
  PeriodGraph graph_;
  LinkRows rows_;
  TreeGrowth growth_;
  DualAscent ascent_;
  std::vector<double> even_;
  double unit_us_ = 1;
  std::unique_ptr<ColumnMaster> master_;
  std::vector<Column> columns_;
  std::vector<std::set<std::vector<SteinerHop>>> known_;  ///< per block
  MasterSolution solution_;
  std::vector<double> best_;  ///< the prices of the best bound
  double best_bound_ = -std::numeric_limits<double>::infinity();
  int iterations_ = 0;
};

}  // namespace

SteinerPacking pack_steiner_trees(const Topology& topology, const Demand& demand,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline) {
  const double affordable = std::max(kFewestMasters, kMostPackingWork / steiner_work(topology, demand));
  const int most = static_cast<int>(std::min(affordable, static_cast<double>(most_iterations)));
  return SteinerLoop(topology, demand, make_master).run(most, deadline);
}

}  // namespace rondo
