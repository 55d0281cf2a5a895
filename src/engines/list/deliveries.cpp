#include "deliveries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

/// Grows the tree of one contribution over GPU-to-GPU hops, and remembers the load that all trees put on the
/// hops.
class TreePlanner {
 public:
  TreePlanner(const Topology& topology, const HopTable& hops)
      : topology_(topology), hops_(hops), load_us_(hops.hops().size(), 0.0) {
    graph_.num_nodes = static_cast<int>(hops.num_gpus());
    for (const Hop& hop : hops.hops()) graph_.arcs.push_back({hop.src.value, hop.dst.value});
    search_ = std::make_unique<ShortestPathSearch>(graph_);
  }

  /// `chunk_bytes`: what a relay has to have memory for.
  std::vector<GpuId> receivers(const Contribution& contribution, double chunk_bytes) {
    std::vector<char> in_tree(hops_.num_gpus(), 0);
    for (const GpuId source : contribution.all_sources()) in_tree[source.index()] = 1;
    std::vector<double> length(hops_.hops().size());
    for (std::size_t h = 0; h < length.size(); ++h) {
      const Hop& hop = hops_.hops()[h];
      // A link that goes down may never bring what its route waits for.
      const double us_per_byte = hop.changes ? hop.longest_us_per_byte : hop.us_per_byte;
      length[h] = (hop.fixed_us + contribution.bytes * us_per_byte) *
                  (1 + (heaviest_us_ > 0 ? load_us_[h] / heaviest_us_ : 0));
    }
    if (topology_.limits_relay_memory()) open_only_to_relays(contribution, in_tree, chunk_bytes);
    search_->set_lengths(length);
    std::vector<GpuId> receivers;
    for (const GpuId destination : contribution.destinations) {
      if (in_tree[destination.index()]) continue;
      std::vector<int> tree;
      for (std::size_t g = 0; g < in_tree.size(); ++g) {
        if (in_tree[g]) tree.push_back(static_cast<int>(g));
      }
      const ShortestPaths paths = search_->from(tree, destination.value);
      for (GpuId g = destination; !in_tree[g.index()];) {
        if (paths.last_arc[g.index()] < 0) refuse(contribution, destination, chunk_bytes);
        const auto h = static_cast<std::size_t>(paths.last_arc[g.index()]);
        in_tree[g.index()] = 1;
        receivers.push_back(g);
        load_us_[h] += contribution.bytes * hops_.hops()[h].us_per_byte;
        heaviest_us_ = std::max(heaviest_us_, load_us_[h]);
        g = hops_.hops()[h].src;
      }
    }
    std::sort(receivers.begin(), receivers.end());
    return receivers;
  }

 private:
  /// Who can hold nothing for others passes nothing on: its hops lead nowhere.
  void open_only_to_relays(const Contribution& contribution, const std::vector<char>& in_tree,
                           double chunk_bytes) {
    Digraph open = graph_;
    for (std::size_t h = 0; h < open.arcs.size(); ++h) {
      const GpuId src = hops_.hops()[h].src;
      const bool takes_part =
          in_tree[src.index()] != 0 || std::ranges::binary_search(contribution.destinations, src);
      if (!takes_part && topology_.node(topology_.node_of(src)).relay_bytes < chunk_bytes)
        open.arcs[h].dst = open.arcs[h].src;
    }
    search_ = std::make_unique<ShortestPathSearch>(open);
  }

  [[noreturn]] void refuse(const Contribution& contribution, GpuId destination, double chunk_bytes) const {
    throw Error(
        ExitCode::unavailable,
        fmt::format("what GPU {} has for GPU {} has to be passed on by GPUs whose memory for that "
                    "(buffer_bytes, --relay-memory) is less than a chunk of {} bytes; give more memory, "
                    "or more --chunks",
                    contribution.origin.value, destination.value, chunk_bytes));
  }

  const Topology& topology_;
  const HopTable& hops_;
  Digraph graph_;
  std::unique_ptr<ShortestPathSearch> search_;
  std::vector<double> load_us_;
  double heaviest_us_ = 0;
};

}  // namespace

Deliveries plan_deliveries(const Topology& topology, const HopTable& hops, const Demand& demand,
                           std::uint64_t seed) {
  Deliveries deliveries;
  deliveries.receivers.resize(demand.contributions().size());
  TreePlanner planner(topology, hops);
  std::vector<std::size_t> order(demand.contributions().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (seed != 0) Random(seed).shuffle(std::span(order));
  for (const std::size_t i : order) {
    const Contribution& contribution = demand.contributions()[i];
    // Where everybody wants the data, everybody relays it.
    const std::size_t having = contribution.all_sources().size();
    deliveries.receivers[i] =
        contribution.destinations.size() + having == topology.num_gpus()
            ? contribution.destinations
            : planner.receivers(contribution, contribution.bytes / demand.chunks_per_contribution());
  }
  return deliveries;
}

}  // namespace rondo
