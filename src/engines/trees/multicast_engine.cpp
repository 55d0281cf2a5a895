#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"

/// AllGather over switches that copy: a transfer to all GPUs of a leaf at once.
namespace rondo {
namespace {

constexpr int kNoLevel = -1;
/// Beyond, local search makes no copies either.
constexpr std::size_t kMostGpus = 128;

/// Links from a GPU through switches, a link after the one before it.
struct LinkTree {
  std::vector<LinkId> links;
  std::vector<int> parents;  ///< per link, the position of the one before it; -1: it leaves the GPU
};

/// Trees of shortest paths through switches that copy.
class SwitchTrees {
 public:
  explicit SwitchTrees(const Topology& topology) : topology_(topology), load_us_(topology.num_links(), 0) {}

  /// One tree for each link on which the chunk leaves its origin. Of equally short paths those that other
  /// branches take already, then those of the least loaded links. Throws Error(unavailable) where a
  /// destination is not reached.
  std::vector<LinkTree> trees_of(GpuId origin, std::span<const GpuId> destinations, double bytes) {
    find_levels(origin);
    const std::size_t nodes = topology_.num_nodes();
    std::vector<LinkId> into(nodes);  // of the trees
    for (const GpuId g : destinations) {
      if (level_[topology_.node_of(g).index()] == kNoLevel) {
        throw Error(ExitCode::unavailable,
                    fmt::format("GPU {} of '{}' is not reached from GPU {} through switches that copy; use "
                                "another engine",
                                g.value, topology_.name(), origin.value));
      }
      for (NodeId n = topology_.node_of(g); level_[n.index()] > 0 && !into[n.index()].valid();) {
        const LinkId link = best_link(n, into);
        into[n.index()] = link;
        load_us_[link.index()] += transmission_us(bytes, topology_.link(link).bandwidth_GBps);
        n = topology_.link(link).src;
      }
    }
    return split_at_origin(topology_.node_of(origin), into);
  }

 private:
  void find_levels(GpuId origin) {
    level_.assign(topology_.num_nodes(), kNoLevel);
    const NodeId root = topology_.node_of(origin);
    level_[root.index()] = 0;
    order_ = {root};
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const NodeId n = order_[i];
      if (n != root && (topology_.is_gpu(n) || !topology_.node(n).multicast)) continue;
      for (const LinkId l : topology_.out_links(n)) {
        const NodeId next = topology_.link(l).dst;
        if (level_[next.index()] != kNoLevel) continue;
        level_[next.index()] = level_[n.index()] + 1;
        order_.push_back(next);
      }
    }
  }

  LinkId best_link(NodeId n, const std::vector<LinkId>& into) const {
    LinkId best;
    std::pair least{true, kInfinity};
    for (const LinkId l : topology_.in_links(n)) {
      const NodeId from = topology_.link(l).src;
      const int level = level_[from.index()];
      if (level == kNoLevel || level + 1 != level_[n.index()]) continue;
      if (level > 0 && (topology_.is_gpu(from) || !topology_.node(from).multicast)) continue;
      const std::pair cost{level > 0 && !into[from.index()].valid(), load_us_[l.index()]};
      if (best.valid() && cost >= least) continue;
      least = cost;
      best = l;
    }
    return best;
  }

  std::vector<LinkTree> split_at_origin(NodeId root, const std::vector<LinkId>& into) const {
    std::vector<LinkTree> trees;
    std::vector<std::pair<int, int>> place(into.size(), {-1, -1});  // per node: tree, link into it
    for (const NodeId n : order_) {
      if (!into[n.index()].valid()) continue;
      const LinkId link = into[n.index()];
      auto [tree, parent] = place[topology_.link(link).src.index()];
      if (topology_.link(link).src == root) {
        tree = static_cast<int>(trees.size());
        trees.emplace_back();
      }
      LinkTree& its = trees[index(tree)];
      place[n.index()] = {tree, static_cast<int>(its.links.size())};
      its.links.push_back(link);
      its.parents.push_back(parent);
    }
    return trees;
  }

  const Topology& topology_;
  std::vector<double> load_us_;
  std::vector<int> level_;
  std::vector<NodeId> order_;  ///< of nodes that are reached, by level
};

/// GPUs behind the same switches.
std::vector<std::vector<GpuId>> leaves_of(const Topology& topology) {
  std::map<std::vector<NodeId>, std::vector<GpuId>> behind;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    std::vector<NodeId> switches;
    for (const LinkId l : topology.in_links(topology.node_of(GpuId{g}))) {
      if (!topology.is_gpu(topology.link(l).src)) switches.push_back(topology.link(l).src);
    }
    std::ranges::sort(switches);
    behind[switches].emplace_back(g);
  }
  std::vector<std::vector<GpuId>> leaves;
  for (auto& [switches, gpus] : behind) leaves.push_back(std::move(gpus));
  return leaves;
}

/// What one GPU sends to some at once.
struct Multicast {
  GpuId origin;
  std::vector<GpuId> destinations;
};

/// In round r leaf a sends to leaf a + r, one GPU after another to all there; at last the GPUs of each leaf
/// to each other. In every round each leaf hears from one other, so that its GPUs' links are busy all the
/// time.
std::vector<Multicast> in_rounds(const std::vector<std::vector<GpuId>>& leaves) {
  std::size_t most = 0;
  for (const auto& leaf : leaves) most = std::max(most, leaf.size());
  std::vector<Multicast> order;
  for (std::size_t r = 1; r < leaves.size(); ++r) {
    for (std::size_t turn = 0; turn < most; ++turn) {
      for (std::size_t a = 0; a < leaves.size(); ++a) {
        if (turn < leaves[a].size()) order.push_back({leaves[a][turn], leaves[(a + r) % leaves.size()]});
      }
    }
  }
  for (std::size_t step = 1; step < most; ++step) {
    for (const auto& leaf : leaves) {
      for (std::size_t i = 0; i < leaf.size() && step < leaf.size(); ++i)
        order.push_back({leaf[i], {leaf[(i + step) % leaf.size()]}});
    }
  }
  return order;
}

/// Each chunk as early as the links allow.
EngineResult multicast(const Topology& topology, const Demand& demand, const EngineOptions& options) {
  SwitchTrees trees(topology);
  LinkTimetable timetable(topology, options.concurrency);
  std::vector<std::vector<ChunkId>> chunks_of(topology.num_gpus());
  for (std::size_t c = 0; c < demand.num_chunks(); ++c)
    chunks_of[demand.origin(ChunkId{c}).index()].emplace_back(c);
  const std::vector<Multicast> order = in_rounds(leaves_of(topology));
  Schedule schedule;
  for (const Multicast& all : order) {
    for (const ChunkId c : chunks_of[all.origin.index()]) {
      const double bytes = demand.bytes(c);
      for (const LinkTree& tree : trees.trees_of(all.origin, all.destinations, bytes)) {
        const Hop hop = make_hop(topology, tree.links, tree.parents);
        timetable.reserve(hop, c, bytes, timetable.earliest_start(hop, bytes, 0), schedule.sends);
      }
    }
  }
  for (const Send& s : schedule.sends) schedule.finish_us = std::max(schedule.finish_us, s.arrival_us);
  canonicalise(schedule);
  EngineResult result;
  result.schedule = std::move(schedule);
  return result;
}

void check_plain(const Instance& instance) {
  if (is_plain_allgather(instance)) return;
  throw Error(ExitCode::unavailable, "engine multicast does plain AllGather; use --engine auto");
}

/// Whether switches join all GPUs, and there are several leaves of several GPUs.
bool is_reached_by_copies(const Instance& instance) {
  const Topology& topology = *instance.topology;
  if (!is_plain_allgather(instance) || topology.num_gpus() > kMostGpus) return false;
  const auto leaves = leaves_of(topology);
  if (leaves.size() < 2 || leaves.size() == topology.num_gpus()) return false;
  SwitchTrees trees(topology);
  std::vector<GpuId> all;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.emplace_back(g);
  try {
    for (const GpuId g : all) trees.trees_of(g, all, 0);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

EngineInfo multicast_engine() {
  return {.name = "multicast",
          .help = "to all GPUs behind a switch at once, which copies; AllGather where switches join all GPUs",
          .applicable = [](const Instance& instance,
                           const EngineOptions&) { return is_reached_by_copies(instance); },
          .takes_seeds = false,
          .traits = kContinuousTime,
          .prepare = [](const Instance& instance, const EngineOptions&, const Toolbox&) -> PreparedEngine {
            check_plain(instance);
            return [topology = instance.topology](const Demand& demand, const EngineOptions& options) {
              return multicast(*topology, demand, options);
            };
          }};
}

}  // namespace rondo
