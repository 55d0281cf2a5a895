#pragma once

#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/link_rows.hpp"
#include "rondo/graph/digraph.hpp"
#include "spanning_packing.hpp"

namespace rondo {

/// Whether links that may be kept have different bandwidths, so that it matters what becomes of their rest.
bool speeds_differ(const Topology& topology);

/// Cheapest paths between GPUs through nodes that are none.
class PathsBetween {
 public:
  PathsBetween(const Topology& topology, const std::vector<GpuId>& members, LinkUse use);

  /// Per member and member what a byte costs at these prices per us, one a row of LinkRows; infinity where
  /// there is no path.
  std::vector<std::vector<double>> costs(const std::vector<double>& price);
  /// There and back.
  std::vector<std::vector<double>> costs_both_ways(const std::vector<double>& price);
  /// By the costs asked for last.
  std::vector<LinkId> path(int from, int to) const;

  /// Whether no path costs less; where there are many different bandwidths, and switches that store, a path
  /// may cost less than is said of it.
  bool are_cheapest() const { return are_cheapest_; }

 private:
  int source_of(GpuId g) const { return static_cast<int>(topology_.num_nodes()) + g.value; }
  /// Those that are cheaper than what `cost` says.
  void add_paths(const std::vector<double>& length, std::vector<std::vector<double>>& cost);

  const Topology& topology_;
  const std::vector<GpuId>& members_;
  LinkRows rows_;
  ShortestPathSearch search_;
  /// That a byte takes over the slowest link of a path through switches: for each of these the paths over
  /// links that are no slower are looked for, as what the others cost depends on it.
  std::vector<double> slowest_us_ = {0};
  bool are_cheapest_ = true;
  std::vector<std::vector<std::vector<int>>> last_arc_ = {};  ///< per search and member
  std::vector<std::vector<std::size_t>> found_by_ = {};       ///< per member and member the search
};

}  // namespace rondo
