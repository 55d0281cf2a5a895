#include "tree_makers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/graph/arborescence.hpp"

namespace rondo {
namespace {

constexpr double kChance = 1e-6;  ///< relative difference that chance makes between equal costs

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

class SpanningTrees : public TreeMaker {
 public:
  SpanningTrees(const Topology& topology, const std::vector<GpuId>& members)
      : members_(members), paths_(topology, members) {}

  WeightedTree cheapest(const std::vector<double>& link_cost, std::uint64_t salt, double& cost) override {
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
    WeightedTree tree;
    cost = 0;
    for (const Edge& e : edges) {
      const int a = root(e.a);
      const int b = root(e.b);
      if (a == b) continue;
      parent[index(a)] = b;
      tree.gather.push_back({e.a, e.b, paths_.path(e.a, e.b)});
      tree.gather.push_back({e.b, e.a, paths_.path(e.b, e.a)});
      cost += e.cost;
    }
    tree.spread = tree.gather;
    if (tree.gather.size() + 2 == 2 * members_.size()) return tree;
    throw Error(ExitCode::unavailable,
                "spanning trees need members that links and switches connect both ways without other GPUs "
                "between; use "
                "--engine auto");
  }

 private:
  const std::vector<GpuId>& members_;
  PathsBetween paths_;
};

class RootedTrees : public TreeMaker {
 public:
  RootedTrees(const Topology& topology, const std::vector<GpuId>& members)
      : members_(members), paths_(topology, members) {}

  WeightedTree cheapest(const std::vector<double>& link_cost, std::uint64_t salt, double& cost) override {
    const auto one_way = paths_.costs(link_cost);
    const int n = static_cast<int>(members_.size());
    Digraph joined{n, {}};
    std::vector<double> out_cost;
    std::vector<double> in_cost;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b || !std::isfinite(one_way[index(a)][index(b)])) continue;
        joined.arcs.push_back({a, b});
        out_cost.push_back(one_way[index(a)][index(b)] * (1 + kChance * chance(salt, 2 * (a * n + b))));
        in_cost.push_back(one_way[index(a)][index(b)] * (1 + kChance * chance(salt, 2 * (a * n + b) + 1)));
      }
    }
    const Digraph backwards = reversed(joined);
    WeightedTree tree;
    cost = std::numeric_limits<double>::infinity();
    Arborescence best_out;
    Arborescence best_in;
    for (int root = 0; root < n; ++root) {
      Arborescence out = cheapest_arborescence(joined, out_cost, root);
      if (out.cost >= cost) continue;
      Arborescence in = cheapest_arborescence(backwards, in_cost, root);
      if (out.cost + in.cost >= cost) continue;
      cost = out.cost + in.cost;
      tree.root = root;
      best_out = std::move(out);
      best_in = std::move(in);
    }
    if (tree.root < 0) {
      throw Error(ExitCode::unavailable,
                  "trees need members that links and switches connect without other GPUs between, from some "
                  "one to all and from all to it; use --engine auto");
    }
    cost /= 1 + kChance;
    const auto arcs = [&](const std::vector<int>& chosen) {
      std::vector<MemberArc> links;
      for (const int a : chosen) {
        const Arc& arc = joined.arcs[index(a)];
        links.push_back({arc.src, arc.dst, paths_.path(arc.src, arc.dst)});
      }
      return links;
    };
    tree.gather = arcs(best_in.arcs);
    tree.spread = arcs(best_out.arcs);
    return tree;
  }

 private:
  /// Within [0, 1).
  static double chance(std::uint64_t salt, int which) {
    const std::uint64_t bits =
        mix_bits(salt + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(which) + 1));
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  const std::vector<GpuId>& members_;
  PathsBetween paths_;
};

}  // namespace

std::unique_ptr<TreeMaker> make_spanning_trees(const Topology& topology, const std::vector<GpuId>& members) {
  return std::make_unique<SpanningTrees>(topology, members);
}

std::unique_ptr<TreeMaker> make_rooted_trees(const Topology& topology, const std::vector<GpuId>& members) {
  return std::make_unique<RootedTrees>(topology, members);
}

}  // namespace rondo
