#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/sketch.hpp"
#include "rondo/core/topology.hpp"

/// What TACCL calls the logical topology: which GPUs send to which, and what a sketch says of that.
namespace rondo {

/// From a GPU to another with no GPU between.
struct Way {
  GpuId src;
  GpuId dst;
  std::vector<int> hops;  ///< of the table, equally fast
  bool leaves_node = false;
  Sketch::Peers peers = Sketch::Peers::any;  ///< policy of the sketch's switch that joins both
};

class RouteGraph {
 public:
  RouteGraph(const Topology& topology, const Sketch* sketch, double chunk_bytes);

  const Topology& topology() const { return topology_; }
  const Sketch* sketch() const { return sketch_; }
  const HopTable& table() const { return table_; }
  const std::vector<Way>& ways() const { return ways_; }
  const Way& way(int w) const { return ways_[static_cast<std::size_t>(w)]; }
  const Hop& hop_of(int w) const { return table_.hop(way(w).hops.front()); }
  const std::vector<int>& out_of(GpuId g) const { return out_[g.index()]; }
  int between(GpuId src, GpuId dst) const;  ///< -1: none
  int node_of(GpuId g) const { return node_[g.index()]; }
  int local_of(GpuId g) const { return local_[g.index()]; }
  /// Fewest ways from a GPU to another; a large number where there is none.
  int distance(GpuId from, GpuId to) const {
    return distance_[from.index() * topology_.num_gpus() + to.index()];
  }

  /// Per way whether the chunk may take it: both ends are on shortest paths to its destinations, not towards
  /// its source, and it leaves its node by a sender that the sketch has for its source.
  std::vector<char> allowed(const Demand& demand, ChunkId chunk) const;

 private:
  const Topology& topology_;
  const Sketch* sketch_;
  HopTable table_;
  std::vector<Way> ways_;
  std::vector<std::vector<int>> out_;
  std::vector<int> node_;
  std::vector<int> local_;
  std::vector<int> distance_;
  std::vector<int> between_;
};

/// Per chunk the ways of its tree, from the source outwards.
using RouteTrees = std::vector<std::vector<int>>;

}  // namespace rondo
