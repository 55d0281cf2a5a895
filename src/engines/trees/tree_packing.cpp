#include "tree_packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// Relative; a link that carries a whole number of chunks exactly is to carry them.
constexpr double kRounding = 1e-9;

/// A directed graph of integer capacities on nodes 0 .. n - 1 and a source n, for maximum flows.
class FlowGraph {
 public:
  explicit FlowGraph(std::size_t num_nodes) : source_(static_cast<int>(num_nodes)) {
    graph_.num_nodes = source_ + 1;
  }
  int source() const { return source_; }
  int add_node() { return graph_.num_nodes++; }
  void add(int src, int dst, std::int64_t capacity) {
    if (capacity <= 0 || src == dst) return;
    graph_.arcs.push_back({src, dst});
    capacity_.push_back(static_cast<double>(capacity));
  }
  std::int64_t max_flow(int from, int to) const {
    return std::llround(min_cut(graph_, capacity_, from, to).value);
  }
  std::size_t num_arcs() const { return graph_.arcs.size(); }
  void remove_last(std::size_t count) {
    graph_.arcs.resize(graph_.arcs.size() - count);
    capacity_.resize(graph_.arcs.size());
  }

 private:
  int source_;
  Digraph graph_;
  std::vector<double> capacity_;  ///< whole numbers, which doubles add and subtract exactly
};

/// A way between nodes of the topology, while switches are split off.
struct Path {
  int src = 0;
  int dst = 0;
  std::int64_t capacity = 0;
  std::vector<LinkId> links;
};

class Packer {
 public:
  Packer(const Topology& topology, int chunks, double bytes)
      : topology_(topology), chunks_(chunks), bytes_(bytes) {
    for (std::size_t g = 0; g < topology.num_gpus(); ++g) gpus_.push_back(topology.node_of(GpuId{g}).value);
    demand_ = static_cast<std::int64_t>(gpus_.size()) * chunks;
    infinite_ = 4 * demand_ + 1;
  }

  TreePacking run() {
    TreePacking packing;
    packing.time_us = least_time_us();
    paths_ = paths_at(packing.time_us);
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (!topology_.is_gpu(NodeId{n})) split_off(static_cast<int>(n));
    }
    if (!feasible(paths_)) {
      throw Error(ExitCode::unavailable,
                  "engine trees: a switch whose links carry more one way than the other cannot be split off; "
                  "use --engine list");
    }
    for (const Path& path : paths_) {
      packing.arcs.push_back({topology_.gpu_of(NodeId{path.src}), topology_.gpu_of(NodeId{path.dst}),
                              path.capacity, path.links});
    }
    pack(packing);
    return packing;
  }

 private:
  std::vector<Path> paths_at(double time_us) const {
    std::vector<Path> paths;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      const double carried = time_us / (link.message_us + transmission_us(bytes_, link.bandwidth_GBps));
      // More than everything does not help.
      const auto capacity = static_cast<std::int64_t>(
          std::min(std::floor(carried * (1 + kRounding)), static_cast<double>(demand_)));
      if (capacity > 0) paths.push_back({link.src.value, link.dst.value, capacity, {LinkId{l}}});
    }
    return paths;
  }

  FlowGraph flow_graph(const std::vector<Path>& paths) const {
    FlowGraph graph(topology_.num_nodes());
    for (const Path& path : paths) graph.add(path.src, path.dst, path.capacity);
    for (const int g : gpus_) graph.add(graph.source(), g, chunks_);
    return graph;
  }

  /// Whether every GPU can take in all chunks (Edmonds' condition).
  bool feasible(const std::vector<Path>& paths) const {
    const FlowGraph graph = flow_graph(paths);
    return std::ranges::all_of(gpus_, [&](int g) { return graph.max_flow(graph.source(), g) >= demand_; });
  }

  double least_time_us() const {
    double high = 1;
    while (!feasible(paths_at(high))) high *= 2;
    double low = high / 2;
    while (low > 0 && feasible(paths_at(low))) low /= 2;
    while (high - low > kRounding * high) {
      const double middle = (low + high) / 2;
      (feasible(paths_at(middle)) ? high : low) = middle;
    }
    return high;
  }

  /// How much of `in` and `out`, which meet in a switch, may be led past it: as long as no cut that has to
  /// let all chunks through becomes too narrow. A cut that becomes narrower has both ends of the new way on
  /// one side and the switch on the other.
  std::int64_t splittable(const Path& in, const Path& out) const {
    std::int64_t most = std::min(in.capacity, out.capacity);
    FlowGraph graph = flow_graph(paths_);
    for (const int g : gpus_) {
      for (const bool ends_inside : {true, false}) {
        if (most == 0) return 0;
        // A GPU that has to be on both sides is on no such cut.
        if (ends_inside && (in.src == g || out.dst == g)) continue;
        const std::size_t before = graph.num_arcs();
        if (ends_inside) {
          graph.add(graph.source(), in.src, infinite_);
          graph.add(graph.source(), out.dst, infinite_);
          graph.add(in.dst, g, infinite_);
        } else {
          graph.add(graph.source(), in.dst, infinite_);
          graph.add(in.src, g, infinite_);
          graph.add(out.dst, g, infinite_);
        }
        most = std::min(most, graph.max_flow(graph.source(), g) - demand_);
        graph.remove_last(graph.num_arcs() - before);
      }
    }
    return most;
  }

  void split_off(int node) {
    for (const bool back_to_where_it_came_from : {false, true}) {
      for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t o = 0; o < paths_.size(); ++o) {
          if (paths_[o].src != node) continue;
          for (std::size_t i = 0; i < paths_.size() && paths_[o].capacity > 0; ++i) {
            if (paths_[i].dst != node || paths_[i].capacity == 0 ||
                (paths_[i].src == paths_[o].dst) != back_to_where_it_came_from) {
              continue;
            }
            const std::int64_t amount = splittable(paths_[i], paths_[o]);
            if (amount <= 0) continue;
            progress = true;
            lead_past(i, o, amount);
          }
        }
      }
    }
    std::erase_if(
        paths_, [&](const Path& path) { return path.src == node || path.dst == node || path.capacity == 0; });
  }

  void lead_past(std::size_t i, std::size_t o, std::int64_t amount) {
    paths_[i].capacity -= amount;
    paths_[o].capacity -= amount;
    if (paths_[i].src == paths_[o].dst) return;
    std::vector<LinkId> links = paths_[i].links;
    links.insert(links.end(), paths_[o].links.begin(), paths_[o].links.end());
    paths_.push_back({paths_[i].src, paths_[o].dst, amount, without_loops(links)});
  }

  /// Past switches that were split off one after another a way may come to the same one again.
  std::vector<LinkId> without_loops(const std::vector<LinkId>& links) const {
    std::vector<LinkId> kept;
    for (const LinkId l : links) {
      kept.push_back(l);
      const auto back = std::ranges::find_if(
          kept, [&](LinkId k) { return topology_.link(k).src == topology_.link(l).dst; });
      kept.erase(back, kept.end());
    }
    return kept;
  }

  struct Growing {
    PackedTree tree;
    std::vector<char> reached;  ///< per GPU
    std::vector<GpuId> order;   ///< GPUs reached, in this order: trees stay shallow
    bool spans() const { return order.size() == reached.size(); }
  };

  /// How often `arc` may join `growing` while all other trees can still be completed (Berczi and Frank,
  /// "Packing arborescences", 2010; ForestColl, theorem 5.4).
  std::int64_t joinable(const TreePacking& packing, const std::vector<std::int64_t>& left, const TreeArc& arc,
                        std::size_t a, const std::vector<Growing>& trees, std::size_t growing) const {
    FlowGraph graph(gpus_.size());
    for (std::size_t i = 0; i < packing.arcs.size(); ++i)
      graph.add(packing.arcs[i].src.value, packing.arcs[i].dst.value, left[i]);
    std::int64_t others = 0;
    for (std::size_t t = 0; t < trees.size(); ++t) {
      if (t == growing || trees[t].spans()) continue;
      others += trees[t].tree.multiplicity;
      if (trees[t].order.size() == 1) {
        graph.add(arc.src.value, trees[t].tree.root.value, trees[t].tree.multiplicity);
        continue;
      }
      const int node = graph.add_node();
      graph.add(arc.src.value, node, trees[t].tree.multiplicity);
      for (const GpuId g : trees[t].order) graph.add(node, g.value, infinite_);
    }
    const std::int64_t spare = graph.max_flow(arc.src.value, arc.dst.value) - others;
    return std::min({left[a], trees[growing].tree.multiplicity, spare});
  }

  void pack(TreePacking& packing) const {
    std::vector<std::int64_t> left;
    std::vector<std::vector<int>> out(gpus_.size());
    for (std::size_t a = 0; a < packing.arcs.size(); ++a) {
      left.push_back(packing.arcs[a].capacity);
      out[packing.arcs[a].src.index()].push_back(static_cast<int>(a));
    }
    std::vector<Growing> trees;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      Growing tree{{GpuId{g}, chunks_, {}}, std::vector<char>(gpus_.size(), 0), {GpuId{g}}};
      tree.reached[g] = 1;
      trees.push_back(std::move(tree));
    }
    for (std::size_t t = 0; t < trees.size(); ++t) {
      while (!trees[t].spans()) grow(packing, left, out, trees, t);
    }
    for (Growing& tree : trees) packing.trees.push_back(std::move(tree.tree));
  }

  void grow(const TreePacking& packing, std::vector<std::int64_t>& left,
            const std::vector<std::vector<int>>& out, std::vector<Growing>& trees, std::size_t t) const {
    for (std::size_t from = 0; from < trees[t].order.size(); ++from) {
      for (const int a : out[trees[t].order[from].index()]) {
        const auto arc_index = static_cast<std::size_t>(a);
        const TreeArc& arc = packing.arcs[arc_index];
        if (left[arc_index] == 0 || trees[t].reached[arc.dst.index()]) continue;
        const std::int64_t amount = joinable(packing, left, arc, arc_index, trees, t);
        if (amount <= 0) continue;
        if (amount < trees[t].tree.multiplicity) {  // the rest goes another way
          trees.push_back(trees[t]);
          trees.back().tree.multiplicity -= amount;
          trees[t].tree.multiplicity = amount;
        }
        left[arc_index] -= amount;
        trees[t].tree.arcs.push_back(a);
        trees[t].reached[arc.dst.index()] = 1;
        trees[t].order.push_back(arc.dst);
        return;
      }
    }
    throw Error(ExitCode::internal, "engine trees: a tree cannot be completed; please report it");
  }

  const Topology& topology_;
  std::int64_t chunks_;
  double bytes_;
  std::vector<int> gpus_;  ///< their nodes
  std::int64_t demand_ = 0;
  std::int64_t infinite_ = 0;
  std::vector<Path> paths_;
};

}  // namespace

TreePacking pack_trees(const Topology& topology, int chunks, double bytes) {
  if (topology.num_gpus() > kMaxTreeGpus) {
    throw Error(ExitCode::unavailable,
                fmt::format("engine trees packs trees of up to {} GPUs, not {}; use --engine queue",
                            kMaxTreeGpus, topology.num_gpus()));
  }
  return Packer(topology, chunks, bytes).run();
}

}  // namespace rondo
