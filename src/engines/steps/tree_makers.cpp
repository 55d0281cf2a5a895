#include "tree_makers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>

#include "paths_between.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/graph/arborescence.hpp"

namespace rondo {
namespace {

constexpr double kChance = 1e-6;  ///< relative difference that chance makes between equal costs
constexpr double kSame = 1e-7;    ///< relative difference of costs by rounding
constexpr double kAlike = 1e-3;   ///< relative difference of arcs that make no dearer a tree

std::uint64_t tie_break(std::uint64_t salt, std::uint64_t which) {
  return mix_bits(salt + 0x9e3779b97f4a7c15ULL * (which + 1));
}

/// By which it is a little dearer; within [1, 1 + kChance).
double by_chance(std::uint64_t salt, std::uint64_t which) {
  return 1 + kChance * (static_cast<double>(tie_break(salt, which) >> 11) * 0x1p-53);
}

/// Members of the tree hang as near to its root as arcs allow that cost no more than theirs, or hardly:
/// chunks are on their way for less time.
void make_shallow(const Digraph& graph, const std::vector<double>& cost, int root, std::vector<int>& arcs) {
  std::vector<int> into(index(graph.num_nodes), -1);
  for (const int a : arcs) into[index(graph.arcs[index(a)].dst)] = a;
  std::vector<int> depth(into.size());
  const auto measure = [&] {
    for (std::size_t v = 0; v < into.size(); ++v) {
      depth[v] = 0;
      for (int a = into[v]; a >= 0; a = into[index(graph.arcs[index(a)].src)]) ++depth[v];
    }
  };
  measure();
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
      const auto [from, to] = graph.arcs[a];
      // What is nearer to the root by two hangs on another branch, or above.
      if (to == root || depth[index(from)] + 1 >= depth[index(to)] ||
          cost[a] > cost[index(into[index(to)])] * (1 + kAlike))
        continue;
      into[index(to)] = static_cast<int>(a);
      measure();
      is_changed = true;
    }
  }
  arcs.clear();
  std::ranges::copy_if(into, std::back_inserter(arcs), [](int a) { return a >= 0; });
}

/// By the costs asked for last.
WeightedTree tree_both_ways(const PathsBetween& paths, const std::vector<std::pair<int, int>>& edges) {
  WeightedTree tree;
  for (const auto& [a, b] : edges) {
    tree.gather.push_back({a, b, paths.path(a, b)});
    tree.gather.push_back({b, a, paths.path(b, a)});
  }
  tree.spread = tree.gather;
  return tree;
}

class SpanningTrees : public TreeMaker {
 public:
  SpanningTrees(const Topology& topology, const std::vector<GpuId>& members, LinkUse use)
      : members_(members), paths_(topology, members, use) {}

  bool is_exact() const override { return paths_.are_cheapest(); }

  WeightedTree cheapest(const std::vector<double>& price, std::uint64_t salt, double& cost) override {
    both_ = paths_.costs_both_ways(price);
    const GrownTree exact = grown_from(0, levels(kSame), salt);
    if (!std::isfinite(exact.cost)) {
      throw Error(ExitCode::unavailable,
                  "spanning trees need members that links and switches connect both ways without other GPUs "
                  "between; use "
                  "--engine auto");
    }
    cost = exact.cost;
    const std::size_t roots = members_.size() <= kManyMembers ? members_.size() : 1;
    const Levels alike = levels(kAlike);
    std::optional<GrownTree> best;
    for (std::size_t r = 0; r < roots; ++r) {
      GrownTree grown = grown_from(static_cast<int>((salt + r) % members_.size()), alike, salt);
      if (!best || std::tuple(grown.depth, grown.cost) < std::tuple(best->depth, best->cost))
        best = std::move(grown);
    }
    return tree_both_ways(paths_, best->edges);
  }

 private:
  struct GrownTree {
    std::vector<std::pair<int, int>> edges = {};
    double cost = 0;
    int depth = 0;  ///< summed over the members
  };

  using Levels = std::vector<std::vector<std::int64_t>>;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Per member and member: equal where costs differ by `step` at most, relatively, and in their order.
  Levels levels(double step) const {
    Levels all(both_.size());
    for (std::size_t a = 0; a < both_.size(); ++a) {
      for (const double cost : both_[a]) {
        const double level = std::floor(std::log(std::max(cost, 1e-300)) / std::log1p(step));
        all[a].push_back(std::isfinite(cost) ? static_cast<std::int64_t>(level) : kNever);
      }
    }
    return all;
  }

  /// Prim's algorithm; of edges of one level the one nearest to the root: chunks are on their way for less
  /// time.
  GrownTree grown_from(int root, const Levels& level, std::uint64_t salt) const {
    const std::size_t n = both_.size();
    struct Reach {
      std::int64_t level = kNever;
      int depth = 0;
      std::uint64_t chance = 0;
      int from = -1;
    };
    const auto key = [](const Reach& r) { return std::tuple(r.level, r.depth, r.chance); };
    std::vector<Reach> reach(n);
    std::vector<int> depth(n, -1);
    GrownTree tree;
    depth[index(root)] = 0;
    for (int last = root; tree.edges.size() + 1 < n;) {
      int next = -1;
      for (std::size_t v = 0; v < n; ++v) {
        if (depth[v] >= 0) continue;
        if (level[index(last)][v] != kNever) {
          const auto pair = std::min(index(last), v) * n + std::max(index(last), v);
          const Reach offered{level[index(last)][v], depth[index(last)] + 1, tie_break(salt, pair), last};
          if (key(offered) < key(reach[v])) reach[v] = offered;
        }
        if (reach[v].from >= 0 && (next < 0 || key(reach[v]) < key(reach[index(next)])))
          next = static_cast<int>(v);
      }
      if (next < 0) return {{}, kInfinity, 0};
      const int from = reach[index(next)].from;
      depth[index(next)] = depth[index(from)] + 1;
      tree.edges.emplace_back(from, next);
      tree.cost += both_[index(from)][index(next)];
      tree.depth += depth[index(next)];
      last = next;
    }
    return tree;
  }

  static constexpr std::size_t kManyMembers = 64;  ///< one root is tried

  const std::vector<GpuId>& members_;
  PathsBetween paths_;
  std::vector<std::vector<double>> both_;  ///< per member and member, there and back
};

class RootedTrees : public TreeMaker {
 public:
  RootedTrees(const Topology& topology, const std::vector<GpuId>& members, LinkUse use)
      : members_(members), paths_(topology, members, use) {}

  bool is_exact() const override { return paths_.are_cheapest(); }

  WeightedTree cheapest(const std::vector<double>& price, std::uint64_t salt, double& cost) override {
    const auto one_way = paths_.costs(price);
    const int n = static_cast<int>(members_.size());
    Digraph joined{n, {}};
    std::vector<double> out_cost;
    std::vector<double> in_cost;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b || !std::isfinite(one_way[index(a)][index(b)])) continue;
        joined.arcs.push_back({a, b});
        const auto pair = static_cast<std::uint64_t>(a * n + b);
        out_cost.push_back(one_way[index(a)][index(b)] * by_chance(salt, 2 * pair));
        in_cost.push_back(one_way[index(a)][index(b)] * by_chance(salt, 2 * pair + 1));
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
    make_shallow(joined, out_cost, tree.root, best_out.arcs);
    make_shallow(backwards, in_cost, tree.root, best_in.arcs);
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
  const std::vector<GpuId>& members_;
  PathsBetween paths_;
};

std::vector<GpuId> all_gpus(const Topology& topology) {
  std::vector<GpuId> gpus;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) gpus.push_back(GpuId(g));
  return gpus;
}

class RelayTrees : public TreeMaker {
 public:
  RelayTrees(const Topology& topology, const std::vector<GpuId>& members, LinkUse use)
      : members_(members), gpus_(all_gpus(topology)), paths_(topology, gpus_, use) {}

  bool is_exact() const override { return false; }

  WeightedTree cheapest(const std::vector<double>& price, std::uint64_t salt, double& cost) override {
    both_ = paths_.costs_both_ways(price);
    for (std::size_t a = 0; a < gpus_.size(); ++a) {
      for (std::size_t b = 0; b < gpus_.size(); ++b)
        both_[a][b] *= by_chance(salt, std::min(a, b) * gpus_.size() + std::max(a, b));
    }
    cost = std::numeric_limits<double>::infinity();
    std::vector<std::pair<int, int>> edges;
    for (const GpuId start : members_) {
      double its_cost = 0;
      auto its_edges = grown_from(start.value, its_cost);
      if (its_cost >= cost) continue;
      cost = its_cost;
      edges = std::move(its_edges);
    }
    if (!std::isfinite(cost)) {
      throw Error(ExitCode::unavailable,
                  "trees over relays need GPUs that links and switches connect both ways; use --engine auto");
    }
    return tree_both_ways(paths_, edges);
  }

 private:
  /// Prim's algorithm from all GPUs of the tree at once, until the next member is reached.
  std::vector<std::pair<int, int>> grown_from(int start, double& cost) const {
    const std::size_t count = gpus_.size();
    std::vector<char> in_tree(count, 0);
    in_tree[index(start)] = 1;
    std::vector<char> is_wanted(count, 0);
    for (const GpuId g : members_) is_wanted[g.index()] = g.value != start;
    std::vector<std::pair<int, int>> edges;
    for (std::size_t joined = 1; joined < members_.size(); ++joined) {
      std::vector<double> far(count, std::numeric_limits<double>::infinity());
      std::vector<int> from(count, -1);
      std::vector<char> is_done(count, 0);
      for (std::size_t g = 0; g < count; ++g) far[g] = in_tree[g] != 0 ? 0 : far[g];
      int reached = -1;
      while (reached < 0) {
        std::size_t next = count;
        for (std::size_t g = 0; g < count; ++g) {
          if (is_done[g] == 0 && std::isfinite(far[g]) && (next == count || far[g] < far[next])) next = g;
        }
        if (next == count) {
          cost = std::numeric_limits<double>::infinity();
          return {};
        }
        is_done[next] = 1;
        if (is_wanted[next] != 0) reached = static_cast<int>(next);
        for (std::size_t g = 0; g < count; ++g) {
          if (far[next] + both_[next][g] >= far[g]) continue;
          far[g] = far[next] + both_[next][g];
          from[g] = static_cast<int>(next);
        }
      }
      cost += far[index(reached)];
      is_wanted[index(reached)] = 0;
      for (int g = reached; in_tree[index(g)] == 0; g = from[index(g)]) {
        in_tree[index(g)] = 1;
        edges.emplace_back(from[index(g)], g);
      }
    }
    return edges;
  }

  const std::vector<GpuId>& members_;
  std::vector<GpuId> gpus_;
  PathsBetween paths_;
  std::vector<std::vector<double>> both_;  ///< per GPU and GPU, there and back
};

}  // namespace

std::unique_ptr<TreeMaker> make_relay_trees(const Topology& topology, const std::vector<GpuId>& members,
                                            LinkUse use) {
  return std::make_unique<RelayTrees>(topology, members, use);
}

std::unique_ptr<TreeMaker> make_spanning_trees(const Topology& topology, const std::vector<GpuId>& members,
                                               LinkUse use) {
  return std::make_unique<SpanningTrees>(topology, members, use);
}

std::unique_ptr<TreeMaker> make_rooted_trees(const Topology& topology, const std::vector<GpuId>& members,
                                             LinkUse use) {
  return std::make_unique<RootedTrees>(topology, members, use);
}

}  // namespace rondo
