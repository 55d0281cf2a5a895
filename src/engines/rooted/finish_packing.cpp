#include "finish_packing.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "rondo/core/index.hpp"
#include "tree_columns.hpp"

namespace rondo {
namespace {

constexpr double kMostMastersOfFinish = 60;
constexpr double kLeastMastersOfFinish = 4;
/// Masters times the arcs of the graph, which growing trees looks at.
constexpr double kMostArcsOfFinish = 5e3;
constexpr int kMostVainOfFinish = 10;  ///< masters after which nothing ends sooner
/// Of trees made cheaper, all together: arcs that are looked at.
constexpr double kMostLooks = 1e6;
constexpr std::size_t kTreesMadeCheaper = 6;  ///< of the packing, the heaviest
constexpr double kCheaperBy = 1e-6;           ///< relative
constexpr double kLeastWeight = 1e-9;
constexpr int kMastersIdle = 10;               ///< after which a tree that is not used is left out
constexpr double kSoonerBy = 1e-5;             ///< relative: less is in vain
constexpr double kLooseFinish = 4;             ///< to begin with, of all data over one tree
constexpr double kLeastWindow = 0.01;          ///< of the finish, for trees that are nearly as deep
constexpr double kShareOfEarlierPrices = 0.7;  ///< of the mean of earlier prices in those priced next
constexpr double kEvenPartOfFinish = 1e-4;     ///< of the prices: keeps links that cost nothing out of trees

class FinishLoop {
 public:
  FinishLoop(const CopyGraph& graph, NodeId root, const LinkRows& rows, const std::vector<double>& delay_us,
             std::vector<char> is_wanted)
      : graph_(graph),
        root_(root.index()),
        rows_(rows),
        delay_us_(delay_us),
        into_(graph.out.size()),
        reached_us_(graph.out.size(), 0),
        is_wanted_(std::move(is_wanted)),
        leave_(graph.out.size()) {
    for (std::size_t w = 0; w < graph.arcs.size(); ++w)
      into_[graph.arcs[w].dst.index()].push_back(static_cast<int>(w));
  }

  FinishPacking run(std::vector<std::vector<int>> columns, const TreesAtCosts& trees_at,
                    const MakeColumnMaster& make_master, const Deadline& deadline) {
    for (std::vector<int>& arcs : columns) add(std::move(arcs));
    FinishPacking best{.finish_us = std::numeric_limits<double>::infinity()};
    finish_us_ = kLooseFinish * (rows_us() + *std::ranges::max_element(depth_us_));
    int vain = 0;
    std::vector<double> mean;
    const double most = std::clamp(kMostArcsOfFinish / static_cast<double>(graph_.arcs.size()),
                                   kLeastMastersOfFinish, kMostMastersOfFinish);
    while (best.iterations < most && vain < kMostVainOfFinish &&
           !(best.iterations > 0 && deadline.is_over())) {
      const MasterSolution solution = solve(make_master);
      ++best.iterations;
      if (solution.status != SolveStatus::optimal) break;
      finish_us_ = finish_of(solution);
      vain = finish_us_ < best.finish_us * (1 - kSoonerBy) ? 0 : vain + 1;
      if (finish_us_ < best.finish_us) keep(solution, best);
      const std::vector<std::vector<int>> heaviest = heaviest_of(solution);
      drop_idle(solution, best.iterations);
      const std::vector<double> even(rows_.count(), 1 / static_cast<double>(rows_.count()));
      const std::vector<double> own = mixed_prices(solution.row_price, even, kEvenPartOfFinish);
      mean = mean.empty() ? own : mixed_prices(own, mean, kShareOfEarlierPrices);
      const bool is_new = add_cheaper_trees(mean, heaviest, trees_at);
      if (!add_cheaper_trees(own, heaviest, trees_at) && !is_new) break;
    }
    return best;
  }

 private:
  /// A tree by the arcs that enter its nodes.
  struct Shape {
    std::vector<int> enters = {};  ///< per node; kNoArc
    std::vector<int> order = {};   ///< arcs, a parent's before its children's
  };

  /// All data over the slowest row.
  double rows_us() const {
    double us = 0;
    for (std::size_t row = 0; row < rows_.count(); ++row) us = std::max(us, rows_.us(static_cast<int>(row)));
    return us;
  }

  bool add(std::vector<int> arcs) {
    if (!known_.insert(tree_key(arcs)).second) return false;
    depth_us_.push_back(depth_of(arcs));
    last_used_.push_back(masters_);
    columns_.push_back(std::move(arcs));
    return true;
  }

  double depth_of(const std::vector<int>& arcs) {
    return tree_depth_us(graph_, delay_us_, arcs, reached_us_);
  }

  /// Loads are those of the rate at which the tree has carried all data by the finish.
  MasterSolution solve(const MakeColumnMaster& make_master) const {
    const auto master = make_master(static_cast<int>(rows_.count()), 1);
    std::vector<MasterColumn> columns;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      columns.push_back(column_of(row_loads(graph_, rows_, columns_[c], window_us(c))));
    master->add(columns);
    return master->solve({});
  }

  double window_us(std::size_t c) const {
    return std::max(finish_us_ - depth_us_[c], kLeastWindow * finish_us_);
  }

  /// Of the same trees, at rates that fill the busiest row; without those that are deeper than that.
  double finish_of(const MasterSolution& solution) {
    rate_.assign(columns_.size(), 0);
    std::vector<std::size_t> shallow_first;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (solution.weight[c] > kLeastWeight) shallow_first.push_back(c);
    std::ranges::stable_sort(shallow_first, {}, [&](std::size_t c) { return depth_us_[c]; });
    double rates = 0, depths = 0;
    double finish_us = std::numeric_limits<double>::infinity();
    for (const std::size_t c : shallow_first) {
      if (depth_us_[c] >= finish_us) break;
      rate_[c] = solution.weight[c] / window_us(c) / solution.theta;
      rates += rate_[c];
      depths += rate_[c] * depth_us_[c];
      finish_us = (1 + depths) / rates;
    }
    return finish_us;
  }

  void keep(const MasterSolution& solution, FinishPacking& best) const {
    best.finish_us = finish_us_;
    best.trees.clear();
    best.weight.clear();
    for (std::size_t c = 0; c < solution.weight.size(); ++c) {
      const double weight = rate_[c] * (finish_us_ - depth_us_[c]);
      if (weight <= kLeastWeight) continue;
      best.trees.push_back(columns_[c]);
      best.weight.push_back(weight);
    }
  }

  std::vector<std::vector<int>> heaviest_of(const MasterSolution& solution) const {
    std::vector<std::size_t> used;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (solution.weight[c] > kLeastWeight) used.push_back(c);
    std::ranges::stable_sort(used, std::ranges::greater{}, [&](std::size_t c) { return solution.weight[c]; });
    if (used.size() > kTreesMadeCheaper) used.resize(kTreesMadeCheaper);
    std::vector<std::vector<int>> trees;
    for (const std::size_t c : used) trees.push_back(columns_[c]);
    return trees;
  }

  /// Trees that the last masters did not use: each is solved from the start.
  void drop_idle(const MasterSolution& solution, int masters) {
    std::size_t kept = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (solution.weight[c] > kLeastWeight) last_used_[c] = masters;
      if (last_used_[c] + kMastersIdle < masters) {
        known_.erase(tree_key(columns_[c]));
        continue;
      }
      if (kept != c) {
        columns_[kept] = std::move(columns_[c]);
        depth_us_[kept] = depth_us_[c];
        last_used_[kept] = last_used_[c];
      }
      ++kept;
    }
    columns_.resize(kept);
    depth_us_.resize(kept);
    last_used_.resize(kept);
    masters_ = masters;
  }

  /// Whether any is new.
  bool add_cheaper_trees(const std::vector<double>& price, const std::vector<std::vector<int>>& heaviest,
                         const TreesAtCosts& trees_at) {
    cost_ = arc_costs(graph_, rows_, price);
    std::vector<std::vector<int>> starts = trees_at(cost_);
    starts.insert(starts.end(), heaviest.begin(), heaviest.end());
    bool is_new = false;
    for (const std::vector<int>& start : starts) {
      Shape shape{std::vector<int>(into_.size(), kNoArc), start};
      for (const int w : start) shape.enters[graph_.arcs[index(w)].dst.index()] = w;
      make_cheaper(shape);
      is_new = add(std::move(shape.order)) || is_new;
    }
    return is_new;
  }

  /// For the time until the finish that the tree leaves.
  double cost_of(const Shape& shape) {
    double cost = 0;
    looks_ += static_cast<double>(shape.order.size());
    for (const int w : shape.order) cost += cost_[index(w)];
    return cost / std::max(finish_us_ - depth_of(shape.order), kLeastWindow * finish_us_);
  }

  /// The arcs on the way to a wanted node, after an entering one has changed.
  void order(Shape& shape) {
    for (std::vector<int>& arcs : leave_) arcs.clear();
    for (const int w : shape.enters)
      if (w != kNoArc) leave_[graph_.arcs[index(w)].src.index()].push_back(w);
    shape.order.clear();
    nodes_.assign(1, root_);
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      for (const int w : leave_[nodes_[k]]) {
        shape.order.push_back(w);
        nodes_.push_back(graph_.arcs[index(w)].dst.index());
      }
    }
    std::vector<char> leads = is_wanted_;
    for (auto w = shape.order.rbegin(); w != shape.order.rend(); ++w) {
      const CopyGraph::Arc& arc = graph_.arcs[index(*w)];
      leads[arc.src.index()] = leads[arc.src.index()] != 0 || leads[arc.dst.index()] != 0 ? 1 : 0;
    }
    std::erase_if(shape.order, [&](int w) { return leads[graph_.arcs[index(w)].dst.index()] == 0; });
  }

  bool is_above(const Shape& shape, std::size_t node, std::size_t of) const {
    while (of != node && of != root_) of = graph_.arcs[index(shape.enters[of])].src.index();
    return of == node;
  }

  /// Enters nodes by other arcs from nodes of the tree, as long as it gets cheaper.
  void make_cheaper(Shape& shape) {
    double cost = cost_of(shape);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t node = 0; node < into_.size() && looks_ < kMostLooks; ++node) {
        for (const int w : into_[node]) {
          const std::size_t from = graph_.arcs[index(w)].src.index();
          const int before = shape.enters[node];
          const bool is_reached = from == root_ || shape.enters[from] != kNoArc;
          if (before == kNoArc || w == before || !is_reached || is_above(shape, node, from)) continue;
          shape.enters[node] = w;
          order(shape);
          const double now = cost_of(shape);
          if (now < cost * (1 - kCheaperBy)) {
            cost = now;
            changed = true;
            std::ranges::fill(shape.enters, kNoArc);
            for (const int kept : shape.order) shape.enters[graph_.arcs[index(kept)].dst.index()] = kept;
          } else {
            shape.enters[node] = before;
          }
        }
      }
    }
    order(shape);
  }

  const CopyGraph& graph_;
  std::size_t root_;
  const LinkRows& rows_;
  const std::vector<double>& delay_us_;
  std::vector<std::vector<int>> into_;  ///< per node, arcs
  std::vector<std::vector<int>> columns_;
  std::vector<double> depth_us_;  ///< per column
  std::vector<int> last_used_;    ///< per column, by which master
  int masters_ = 0;
  std::vector<double> rate_;  ///< per column, of all data a us
  std::set<std::vector<int>> known_;
  double finish_us_ = 0;
  std::vector<double> cost_;             ///< per arc
  std::vector<double> reached_us_;       ///< per node, of one tree
  std::vector<char> is_wanted_;          ///< per node
  std::vector<std::vector<int>> leave_;  ///< per node, arcs of one tree
  std::vector<std::size_t> nodes_;
  double looks_ = 0;
};

}  // namespace

FinishPacking pack_for_finish(const CopyGraph& graph, NodeId root, const LinkRows& rows,
                              const std::vector<double>& delay_us, std::vector<char> is_wanted,
                              std::vector<std::vector<int>> columns, const TreesAtCosts& trees_at,
                              const MakeColumnMaster& make_master, const Deadline& deadline) {
  return FinishLoop(graph, root, rows, delay_us, std::move(is_wanted))
      .run(std::move(columns), trees_at, make_master, deadline);
}

}  // namespace rondo
