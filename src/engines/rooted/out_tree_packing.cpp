#include "out_tree_packing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "bounded_tree.hpp"
#include "finish_packing.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/flows/link_rows.hpp"
#include "rondo/graph/digraph.hpp"
#include "tree_columns.hpp"
#include "tree_growth.hpp"

namespace rondo {
namespace {

constexpr double kNearLeast = 1e-4;      ///< relative distance from what is enough
constexpr double kGrowthOfPrices = 0.5;  ///< growth of the prices of multiplicative weights
constexpr double kEvenPart = 1e-4;       ///< of the prices: keeps paths over links that cost nothing short
constexpr double kShareOfEarlier = 0.5;  ///< of the mean of earlier prices in those that are priced next
constexpr double kMostArcs = 2e6;        ///< looked at by all trees together
constexpr double kMostFirstTrees = 200;  ///< by multiplicative weights
constexpr double kMostMasters = 400;
constexpr double kLeastTrees = 8;
constexpr int kMostVainMasters = 40;    ///< in which no tree is new or the packing is as busy as before
constexpr double kChunksOfDelay = 256;  ///< delays are those of so many chunks
/// Where depth or finish is the aim: delays are those of chunks of so many bytes.
constexpr double kSmallChunkBytes = 4e3;
/// Where depth is the aim: a tree counts by this power of its depth, and links may be busy longer by this
/// share.
constexpr double kPowerOfDepth = 8;
constexpr double kBusierWhereShallow = 1e-7;
/// Bounds of depth, evenly between that of shortest paths and the deepest one in use.
constexpr int kBoundsOfDepth = 6;
/// Depth weights, in turn, of trees that are to be shallow at the prices of a busy packing.
constexpr double kDepthsInTurn[] = {0.03, 0.1, 0.3, 1, 3, 10};
constexpr int kMostVainTurns = 20;
constexpr double kMastersOfTurn = 3;  ///< for whose trees a turn takes as long
/// Trees of a smaller share are left out, in turn, and how much longer links may be busy then.
constexpr double kLeastShares[] = {1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 0.01, 0.02};
constexpr double kBusierWithFew = 2e-3;

class OutTreeLoop {
 public:
  OutTreeLoop(const Topology& topology, const CopyGraph& graph, const RootedData& data,
              const DepthPreference& depth, const MakeColumnMaster& make_master)
      : topology_(topology),
        graph_(graph),
        data_(data),
        depth_(depth),
        make_master_(make_master),
        growth_(topology, graph, data.root, data.destinations),
        rows_(topology, data.bytes) {
    double sum = 0;
    for (const CopyGraph::Arc& arc : graph.arcs) {
      double delay_us = 0;
      for (const LinkId l : arc.links) delay_us += topology.link(l).latency_us;
      // Chunks are whole where they are sent on.
      if (topology.is_gpu(arc.src)) {
        delay_us +=
            transmission_us(depth.aim == PackingAim::busy_time ? data.bytes / kChunksOfDelay
                                                               : std::min(data.bytes, kSmallChunkBytes),
                            topology.link(arc.links.front()).bandwidth_GBps);
      }
      delay_us_.push_back(delay_us);
      sum += delay_us;
    }
    mean_delay_us_ = std::max(sum / static_cast<double>(graph.arcs.size()), 1e-9);
    is_wanted_.assign(topology.num_nodes(), 0);
    for (const GpuId g : data.destinations) is_wanted_[topology.node_of(g).index()] = 1;
    reached_us_.assign(topology.num_nodes(), 0);
    even_.assign(rows_.count(), 1 / static_cast<double>(rows_.count()));
    load_.assign(rows_.count(), 0);
    unit_us_ = rows_.least_us();
    master_ = make_master(static_cast<int>(rows_.count()), 1);
  }

  OutTreePacking run(double enough_us, const Deadline& deadline) {
    const double most = kMostArcs / static_cast<double>(graph_.arcs.size());
    first_trees(std::clamp(most / 2, kLeastTrees, kMostFirstTrees), enough_us, deadline);
    MasterSolution solution = master_->solve({});
    std::vector<double> mean = even_;
    double least = std::numeric_limits<double>::infinity();
    int vain = 0;
    const double most_masters = std::clamp(most / 2, kLeastTrees, kMostMasters);
    while (solution.status == SolveStatus::optimal && packing_.iterations < most_masters &&
           vain < kMostVainMasters && solution.theta * unit_us_ > enough_us * (1 + kNearLeast) &&
           !deadline.is_over()) {
      const std::vector<double> own = mixed_prices(solution.row_price, even_, kEvenPart);
      mean = mixed_prices(own, mean, kShareOfEarlier);
      const bool is_new = add_tree(mean);
      const bool own_is_new = add_tree(own);
      if (!is_new && !own_is_new) break;
      solution = master_->solve({});
      ++packing_.iterations;
      vain = solution.theta < least * (1 - kNearLeast / 100) ? 0 : vain + 1;
      least = std::min(least, solution.theta);
    }
    if (solution.status != SolveStatus::optimal) return result(solution);
    if (depth_.aim == PackingAim::finish) return for_finish(solution, deadline);
    if (depth_.aim == PackingAim::depth) solution = shallower(solution, most_masters, deadline);
    return result(solution);
  }

 private:
  /// Of trees as good as these and better ones, the data so that all of it is there soonest.
  OutTreePacking for_finish(const MasterSolution& packed, const Deadline& deadline) {
    std::vector<std::vector<int>> used;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (packed.weight[c] > 0) used.push_back(columns_[c]);
    const auto trees_at = [&](const std::vector<double>& cost) {
      std::vector<std::vector<int>> trees;
      for (const double depth : kDepthsInTurn) trees.push_back(cheapest(cost, depth));
      return trees;
    };
    FinishPacking found = pack_for_finish(graph_, topology_.node_of(data_.root), rows_, delay_us_, is_wanted_,
                                          std::move(used), trees_at, make_master_, deadline);
    packing_.iterations += found.iterations;
    if (found.trees.empty()) return result(packed);
    columns_ = std::move(found.trees);
    MasterSolution solution{.theta = 0, .weight = std::move(found.weight)};
    load_.assign(rows_.count(), 0);
    for (std::size_t c = 0; c < columns_.size(); ++c)
      for (const auto& [row, load] : loads(columns_[c])) load_[index(row)] += solution.weight[c] * load;
    solution.theta = std::ranges::max(load_);
    OutTreePacking packing = result(solution);
    packing.finish_us = found.finish_us;
    return packing;
  }

  double depth_us(const std::vector<int>& arcs) {
    return tree_depth_us(graph_, delay_us_, arcs, reached_us_);
  }

  /// Of the packings that keep links busy hardly longer, one whose deepest trees are shallow: by columns,
  /// too.
  MasterSolution shallower(const MasterSolution& packed, double most_masters, const Deadline& deadline) {
    const auto depth_row = static_cast<int>(rows_.count());
    const std::unique_ptr<ColumnMaster> master = make_master_(depth_row + 1, 1);
    for (int row = 0; row < depth_row; ++row)
      master->limit_row(row, packed.theta * (1 + kBusierWhereShallow));
    double unit_us = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (packed.weight[c] > 0) unit_us = std::max(unit_us, depth_us(columns_[c]));
    const auto with_depth = [&](const std::vector<int>& arcs) {
      MasterColumn column = column_of(loads(arcs));
      column.rows.push_back(depth_row);
      column.loads.push_back(std::pow(depth_us(arcs) / unit_us, kPowerOfDepth));
      return column;
    };
    std::vector<MasterColumn> known;
    for (const std::vector<int>& arcs : columns_) known.push_back(with_depth(arcs));
    master->add(known);
    MasterSolution solution = master->solve({});
    if (solution.status != SolveStatus::optimal) return packed;
    double least = solution.theta;
    int vain = 0;
    const std::vector<int> shortest = shortest_paths();
    for (double masters = 0; vain < kMostVainTurns && masters < most_masters && !deadline.is_over();
         masters += kMastersOfTurn) {
      const std::vector<double> price(solution.row_price.begin(), solution.row_price.end() - 1);
      std::vector<MasterColumn> added;
      const auto add = [&](std::vector<int> arcs) {
        if (!is_new(arcs)) return;
        added.push_back(with_depth(arcs));
        columns_.push_back(std::move(arcs));
      };
      const std::vector<double> cost = costs(mixed_prices(price, even_, kEvenPart));
      double deepest_us = 0;
      for (std::size_t c = 0; c < columns_.size(); ++c)
        if (solution.weight[c] > 0) deepest_us = std::max(deepest_us, depth_us(columns_[c]));
      for (const double depth : kDepthsInTurn) {
        std::vector<int> arcs = cheapest(cost, depth);
        add(cheaper(cost, depth_us(arcs), arcs));
        add(std::move(arcs));
      }
      const double least_us = depth_us(shortest);
      for (int i = 0; i < kBoundsOfDepth; ++i) {
        const double most_us = least_us + i * (deepest_us - least_us) / kBoundsOfDepth;
        add(cheaper(cost, most_us, shortest));
        if (const auto arcs = cheapest_within(cost, most_us)) add(cheaper(cost, most_us, *arcs));
      }
      if (added.empty()) break;
      master->add(added);
      MasterSolution next = master->solve({});
      if (next.status != SolveStatus::optimal) break;
      solution = std::move(next);
      ++packing_.iterations;
      vain = solution.theta < least * (1 - kNearLeast) ? 0 : vain + 1;
      least = std::min(least, solution.theta);
    }
    solution.theta = packed.theta;
    return of_few(solution);
  }

  /// What takes a small share goes slowly from hop to hop: without the lightest trees, as long as links are
  /// busy hardly longer.
  MasterSolution of_few(MasterSolution packed) {
    const double most = packed.theta * (1 + kBusierWithFew);
    for (const double least : kLeastShares) {
      std::vector<std::vector<int>> kept;
      std::vector<MasterColumn> known;
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (c >= packed.weight.size() || packed.weight[c] < least) continue;
        kept.push_back(columns_[c]);
        known.push_back(column_of(loads(columns_[c])));
      }
      if (kept.empty()) break;
      if (kept.size() == columns_.size()) continue;
      const std::unique_ptr<ColumnMaster> master = make_master_(static_cast<int>(rows_.count()), 1);
      master->add(known);
      MasterSolution few = master->solve({});
      if (few.status != SolveStatus::optimal || few.theta > most) break;
      columns_ = std::move(kept);
      packed = std::move(few);
    }
    return packed;
  }

  /// The tree to whose nodes no other is shorter.
  std::vector<int> shortest_paths() {
    std::vector<ArcFigures> figures(graph_.arcs.size());
    for (std::size_t w = 0; w < figures.size(); ++w) figures[w].delay = delay_us_[w];
    return growth_.grow(figures);
  }

  /// A tree at these costs that is no deeper.
  std::optional<std::vector<int>> cheapest_within(const std::vector<double>& cost, double most_us) {
    std::vector<ArcFigures> figures(graph_.arcs.size());
    for (std::size_t w = 0; w < figures.size(); ++w) figures[w] = {cost[w], 0, delay_us_[w]};
    return growth_.grow_within(figures, most_us);
  }

  /// Starting from these arcs, a tree that is cheaper and no deeper than `most_us`.
  std::vector<int> cheaper(const std::vector<double>& cost, double most_us, const std::vector<int>& arcs) {
    return cheaper_within(graph_, topology_.node_of(data_.root), is_wanted_, cost, delay_us_, most_us, arcs);
  }

  std::vector<double> costs(const std::vector<double>& price) const {
    return arc_costs(graph_, rows_, price);
  }

  bool is_new(const std::vector<int>& arcs) { return known_.insert(tree_key(arcs)).second; }

  std::map<int, double> loads(const std::vector<int>& arcs) const {
    return row_loads(graph_, rows_, arcs, unit_us_);
  }

  /// The tree at these costs; `last_` is what it loads.
  std::vector<int> cheapest(const std::vector<double>& cost, double depth_weight) {
    std::vector<ArcFigures> figures(graph_.arcs.size());
    for (std::size_t w = 0; w < figures.size(); ++w) {
      figures[w].cost = cost[w];
      figures[w].delay = depth_weight * cost_a_destination_ * delay_us_[w] / mean_delay_us_;
    }
    std::vector<int> arcs = growth_.grow(figures);
    double whole = 0;
    for (const int w : arcs) whole += cost[index(w)];
    cost_a_destination_ = whole / static_cast<double>(data_.destinations.size());
    last_ = loads(arcs);
    return arcs;
  }

  bool add_tree(const std::vector<double>& price) {
    std::vector<int> arcs = cheapest(costs(price), depth_.weight);
    if (!is_new(arcs)) return false;
    master_->add({column_of(last_)});
    columns_.push_back(std::move(arcs));
    return true;
  }

  /// Prices that grow with the loads so far spread the trees over all links. Ends early where the trees so
  /// far, each for an equal share, are as good as asked.
  void first_trees(double most, double enough_us, const Deadline& deadline) {
    double unit = 0;
    for (int i = 0; i < static_cast<int>(most) && (i == 0 || !deadline.is_over()); ++i) {
      const double busiest = *std::ranges::max_element(load_);
      std::vector<double> price(load_.size(), 1);
      for (std::size_t r = 0; r < load_.size() && unit > 0; ++r)
        price[r] = std::exp(kGrowthOfPrices * (load_[r] - busiest) / unit);
      add_tree(mixed_prices(std::move(price), even_, kEvenPart));
      for (const auto& [row, load] : last_) {
        load_[index(row)] += load;
        if (i == 0) unit = std::max(unit, load);
      }
      if (*std::ranges::max_element(load_) * unit_us_ <= enough_us * (1 + kNearLeast) * (i + 1)) break;
    }
  }

  OutTreePacking result(const MasterSolution& solution) {
    packing_.busy_us = solution.theta * unit_us_;
    for (std::size_t c = 0; c < columns_.size() && c < solution.weight.size(); ++c) {
      if (solution.weight[c] <= 1e-9) continue;
      packing_.trees.push_back(tree_of_arcs(topology_, graph_, columns_[c]));
      packing_.trees.back().weight = solution.weight[c];
    }
    std::ranges::stable_sort(packing_.trees, std::greater<>{}, &OutTree::weight);
    return std::move(packing_);
  }

  const Topology& topology_;
  const CopyGraph& graph_;
  const RootedData& data_;
  DepthPreference depth_;
  const MakeColumnMaster& make_master_;
  OutTreeGrowth growth_;
  LinkRows rows_;                 ///< all data over them
  std::vector<double> delay_us_;  ///< per arc
  double mean_delay_us_ = 1;
  std::vector<char> is_wanted_;     ///< per node
  std::vector<double> reached_us_;  ///< per node, of one tree
  std::vector<double> even_;
  std::vector<double> load_;
  double unit_us_ = 1;
  double cost_a_destination_ = 0;  ///< of the last tree
  std::unique_ptr<ColumnMaster> master_;
  std::map<int, double> last_;
  std::vector<std::vector<int>> columns_;
  std::set<std::vector<int>> known_;
  OutTreePacking packing_;
};

}  // namespace

double least_busy_us(const Topology& topology, const RootedData& data) {
  std::vector<double> capacity;
  for (const Link& link : topology.links()) capacity.push_back(link.bandwidth_GBps);
  double busy_us = 0;
  for (const GpuId d : data.destinations) {
    const MinCut cut =
        min_cut(topology.graph(), capacity, topology.node_of(data.root).value, topology.node_of(d).value);
    busy_us = std::max(busy_us, transmission_us(data.bytes, cut.value));
  }
  return busy_us;
}

OutTreePacking pack_out_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data,
                              const DepthPreference& depth, double enough_us,
                              const MakeColumnMaster& make_master, const Deadline& deadline) {
  return OutTreeLoop(topology, graph, data, depth, make_master).run(enough_us, deadline);
}

}  // namespace rondo
