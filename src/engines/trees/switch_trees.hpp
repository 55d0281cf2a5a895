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

/// Trees of shortest paths through switches.
class SwitchTrees {
 public:
  static constexpr int kNotReached = -1;

  /// Switches that copy, or all: then trees are of one destination alone.
  enum class Through { copying, all };

  explicit SwitchTrees(const Topology& topology, Through through = Through::copying);

  /// Per GPU, links on the way there; 0 to itself.
  std::vector<int> links_to_gpus(GpuId origin);
  /// One tree for each link on which the chunk leaves its origin. Of equally short paths those that other
  /// branches take already, then those of the least loaded links. Throws Error(unavailable) where a
  /// destination is not reached.
  std::vector<LinkTree> trees_of(GpuId origin, std::span<const GpuId> destinations, double bytes);

 private:
  /// As far as these; of all nodes where there are none.
  void find_levels(GpuId origin, std::span<const GpuId> destinations);
  bool leads_on(NodeId n) const;
  LinkId best_link(NodeId n, const std::vector<LinkId>& into) const;
  std::vector<LinkTree> split_at_origin(NodeId root, const std::vector<LinkId>& into) const;

  const Topology& topology_;
  Through through_;
  std::vector<double> load_us_;
  std::vector<char> is_wanted_;  ///< by node, of those that are being looked for
  std::vector<int> level_;
  std::vector<NodeId> order_;  ///< of nodes that are reached, by level
};

}  // namespace rondo
