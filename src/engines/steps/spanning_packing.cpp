#include "spanning_packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr double kEnough = 1e-4;        ///< relative distance of packing and bound that ends the columns
constexpr double kSharpness = 0.5;      ///< growth of the prices of multiplicative weights
constexpr double kUniformShare = 1e-6;  ///< of the prices: keeps paths over links that cost nothing short
constexpr double kOldShare = 0.5;       ///< of the best prices so far in those that are priced next

/// Rows of the master: links, then groups.
class Rows {
 public:
  explicit Rows(const Topology& topology)
      : us_per_byte_(topology.num_links()), rows_of_(topology.num_links()) {
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      us_per_byte_[l] = transmission_us(1, topology.links()[l].bandwidth_GBps);
      rows_of_[l].push_back(static_cast<int>(l));
    }
    for (const SharedBandwidth& group : topology.shared_bandwidth()) {
      for (const LinkId l : group.links) rows_of_[l.index()].push_back(static_cast<int>(us_per_byte_.size()));
      us_per_byte_.push_back(transmission_us(1, group.bandwidth_GBps));
    }
  }

  std::size_t count() const { return us_per_byte_.size(); }

  /// What a byte over each link costs at these prices.
  std::vector<double> link_costs(const std::vector<double>& price) const {
    std::vector<double> cost(rows_of_.size(), 0);
    for (std::size_t l = 0; l < cost.size(); ++l) {
      for (const int row : rows_of_[l]) cost[l] += price[index(row)] * us_per_byte_[index(row)];
    }
    return cost;
  }

  std::map<int, double> loads(const std::vector<TreeEdge>& edges) const {
    std::map<int, double> load;
    for (const TreeEdge& edge : edges) {
      for (const auto* path : {&edge.there, &edge.back}) {
        for (const LinkId l : *path) {
          for (const int row : rows_of_[l.index()]) load[row] += us_per_byte_[index(row)];
        }
      }
    }
    return load;
  }

 private:
  std::vector<double> us_per_byte_;  ///< per row
  std::vector<std::vector<int>> rows_of_;
};

/// Cheapest paths between members through nodes that are no GPUs.
class PathsBetween {
 public:
  PathsBetween(const Topology& topology, const std::vector<GpuId>& members)
      : topology_(topology), members_(members), graph_(switch_graph(topology)), search_(graph_) {}

  /// Per member and member the cost; infinity where there is no path.
  std::vector<std::vector<double>> costs(const std::vector<double>& link_cost) {
    search_.set_lengths(link_cost);
    last_arc_.clear();
    std::vector<std::vector<double>> cost(members_.size());
    for (std::size_t m = 0; m < members_.size(); ++m) {
      ShortestPaths paths = search_.from(source_of(members_[m]));
      for (const GpuId to : members_) cost[m].push_back(paths.distance[topology_.node_of(to).index()]);
      last_arc_.push_back(std::move(paths.last_arc));
    }
    return cost;
  }

  /// By the costs asked for last.
  std::vector<LinkId> path(int from, int to) const {
    std::vector<LinkId> links;
    const std::vector<int>& last = last_arc_[index(from)];
    NodeId node = topology_.node_of(members_[index(to)]);
    for (int arc = last[node.index()]; arc >= 0;) {
      const LinkId link{arc};
      links.push_back(link);
      const NodeId src = topology_.link(link).src;
      arc = topology_.is_gpu(src) ? -1 : last[src.index()];
    }
    std::ranges::reverse(links);
    return links;
  }

 private:
  /// GPUs send from copies of their nodes, behind those of the topology, so that no path goes on from one.
  static Digraph switch_graph(const Topology& topology) {
    Digraph graph = topology.graph();
    graph.num_nodes += static_cast<int>(topology.num_gpus());
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const NodeId src = topology.links()[l].src;
      if (topology.is_gpu(src))
        graph.arcs[l].src = static_cast<int>(topology.num_nodes()) + topology.gpu_of(src).value;
    }
    return graph;
  }
  int source_of(GpuId g) const { return static_cast<int>(topology_.num_nodes()) + g.value; }

  const Topology& topology_;
  const std::vector<GpuId>& members_;
  Digraph graph_;
  ShortestPathSearch search_;
  std::vector<std::vector<int>> last_arc_;  ///< per member
};

class SpanningTrees {
 public:
  SpanningTrees(const Topology& topology, const std::vector<GpuId>& members)
      : members_(members), paths_(topology, members) {}

  /// A minimum spanning tree; `salt` settles ties between edges of one cost.
  std::vector<TreeEdge> cheapest(const std::vector<double>& link_cost, std::uint64_t salt, double& cost) {
    const auto one_way = paths_.costs(link_cost);
    struct Edge {
      double cost;
      std::uint64_t chance;
      int a, b;
    };
    std::vector<Edge> edges;
    const int n = static_cast<int>(members_.size());
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        const double both = one_way[index(a)][index(b)] + one_way[index(b)][index(a)];
        const auto pair =
            static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(n) + static_cast<std::uint64_t>(b);
        if (std::isfinite(both))
          edges.push_back({both, mix_bits(salt + 0x9e3779b97f4a7c15ULL * (pair + 1)), a, b});
      }
    }
    // Costs that differ by rounding alone are ties.
    const auto rounded = [](double x) { return static_cast<float>(x); };
    std::ranges::sort(edges, {}, [&](const Edge& e) { return std::tuple(rounded(e.cost), e.chance); });
    std::vector<int> parent(members_.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int m) {
      while (parent[index(m)] != m) m = parent[index(m)] = parent[index(parent[index(m)])];
      return m;
    };
    std::vector<TreeEdge> tree;
    cost = 0;
    for (const Edge& e : edges) {
      const int a = root(e.a);
      const int b = root(e.b);
      if (a == b) continue;
      parent[index(a)] = b;
      tree.push_back({e.a, e.b, paths_.path(e.a, e.b), paths_.path(e.b, e.a)});
      cost += e.cost;
    }
    if (tree.size() + 1 == members_.size()) return tree;
    throw Error(ExitCode::unavailable,
                "spanning trees need members that links and switches connect both ways without other GPUs "
                "between; use "
                "--engine auto");
  }

 private:
  const std::vector<GpuId>& members_;
  PathsBetween paths_;
};

std::vector<double> normalised(std::vector<double> price) {
  const double sum = std::accumulate(price.begin(), price.end(), 0.0);
  const double uniform = 1 / static_cast<double>(price.size());
  for (double& p : price)
    p = (sum > 0 ? (1 - kUniformShare) * p / sum : 0) + (sum > 0 ? kUniformShare : 1) * uniform;
  return price;
}

class PackingLoop {
 public:
  PackingLoop(const Topology& topology, const std::vector<GpuId>& members,
              const MakeColumnMaster& make_master)
      : rows_(topology), trees_(topology, members), master_(make_master(static_cast<int>(rows_.count()), 1)) {
    // The greatest load of one tree is about 1, whatever the bandwidths.
    const std::vector<double> even = normalised(std::vector<double>(rows_.count(), 1.0));
    double cost = 0;
    for (const auto& [row, load] : rows_.loads(trees_.cheapest(rows_.link_costs(even), 0, cost)))
      unit_ = std::max(unit_, load);
  }

  SpanningPacking run(int most_iterations, const Deadline& deadline) {
    warm_up(deadline);
    std::vector<double> best_price = normalised(std::vector<double>(rows_.count(), 1.0));
    MasterSolution solution;
    for (; iteration_ < most_iterations; ++iteration_) {
      solution = master_->solve({});
      if (solution.status != SolveStatus::optimal || solution.theta * unit_ <= bound_ * (1 + kEnough) ||
          deadline.is_over())
        break;
      std::vector<double> price = normalised(solution.row_price);
      for (std::size_t r = 0; r < price.size(); ++r)
        price[r] = (1 - kOldShare) * price[r] + kOldShare * best_price[r];
      const double before = bound_;
      const bool is_new = add_tree(price);
      if (bound_ > before) best_price = price;
      if (!is_new && !add_tree(normalised(solution.row_price))) break;
    }
    if (solution.weight.size() != columns_.size()) solution = master_->solve({});
    return result(solution);
  }

 private:
  /// Prices that grow with the loads so far spread the first trees over all links.
  void warm_up(const Deadline& deadline) {
    std::vector<double> load(rows_.count(), 0);
    const int rounds = static_cast<int>(std::min<std::size_t>(rows_.count(), kWarmUp));
    for (int i = 0; i < rounds && (i == 0 || !deadline.is_over()); ++i) {
      const double most = *std::ranges::max_element(load);
      std::vector<double> price(load.size());
      for (std::size_t r = 0; r < load.size(); ++r)
        price[r] = std::exp(kSharpness * (load[r] - most) / unit_);
      add_tree(normalised(std::move(price)));
      for (const auto& [row, added] : rows_.loads(last_)) load[index(row)] += added;
    }
  }

  bool add_tree(const std::vector<double>& price) {
    double cost = 0;
    last_ = trees_.cheapest(rows_.link_costs(price), ++salt_, cost);
    bound_ = std::max(bound_, cost);
    std::vector<std::pair<int, int>> edges;
    for (const TreeEdge& edge : last_) edges.emplace_back(edge.a, edge.b);
    std::ranges::sort(edges);
    MasterColumn column;
    std::vector<LinkId> links;
    for (const auto& [row, load] : rows_.loads(last_)) {
      column.rows.push_back(row);
      column.loads.push_back(load / unit_);
    }
    if (!known_.emplace(std::pair(edges, column.rows), columns_.size()).second) return false;
    master_->add({column});
    columns_.push_back(last_);
    return true;
  }

  SpanningPacking result(const MasterSolution& solution) {
    SpanningPacking packing;
    packing.us_per_byte = solution.theta * unit_;
    packing.bound_us_per_byte = bound_;
    packing.iterations = iteration_;
    for (std::size_t c = 0; c < columns_.size() && c < solution.weight.size(); ++c) {
      if (solution.weight[c] > 1e-9) packing.trees.push_back({solution.weight[c], std::move(columns_[c])});
    }
    std::ranges::stable_sort(packing.trees, std::greater<>{}, &WeightedTree::weight);
    return packing;
  }

  static constexpr std::size_t kWarmUp = 200;

  Rows rows_;
  SpanningTrees trees_;
  std::unique_ptr<ColumnMaster> master_;
  double unit_ = 0;
  double bound_ = 0;  ///< us a byte
  int iteration_ = 0;
  std::uint64_t salt_ = 0;
  std::vector<TreeEdge> last_;
  std::vector<std::vector<TreeEdge>> columns_;
  std::map<std::pair<std::vector<std::pair<int, int>>, std::vector<int>>, std::size_t> known_;
};

}  // namespace

SpanningPacking pack_spanning_trees(const Topology& topology, const std::vector<GpuId>& members,
                                    const MakeColumnMaster& make_master, int most_iterations,
                                    const Deadline& deadline) {
  return PackingLoop(topology, members, make_master).run(most_iterations, deadline);
}

}  // namespace rondo
