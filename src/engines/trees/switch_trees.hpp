#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Links from a GPU through switches, a link after the one before it.
struct LinkTree {
  std::vector<LinkId> links;
  std::vector<int> parents;  ///< per link, the position of the one before it; -1: it leaves the GPU
};

/// Trees of shortest paths through switches that copy.
class SwitchTrees {
 public:
  static constexpr int kNotReached = -1;

  explicit SwitchTrees(const Topology& topology) : topology_(topology), load_us_(topology.num_links(), 0) {}

  /// Per GPU, links on the way there; 0 to itself.
  std::vector<int> links_to_gpus(GpuId origin);
  /// One tree for each link on which the chunk leaves its origin. Of equally short paths those that other
  /// branches take already, then those of the least loaded links. Throws Error(unavailable) where a
  /// destination is not reached.
  std::vector<LinkTree> trees_of(GpuId origin, std::span<const GpuId> destinations, double bytes);

 private:
  void find_levels(GpuId origin);
  LinkId best_link(NodeId n, const std::vector<LinkId>& into) const;
  std::vector<LinkTree> split_at_origin(NodeId root, const std::vector<LinkId>& into) const;

  const Topology& topology_;
  std::vector<double> load_us_;
  std::vector<int> level_;
  std::vector<NodeId> order_;  ///< of nodes that are reached, by level
};

}  // namespace rondo
