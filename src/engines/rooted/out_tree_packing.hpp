#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "copy_graph.hpp"
#include "out_tree.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Data of one GPU that others want, all of it.
struct RootedData {
  GpuId root;
  std::vector<GpuId> destinations = {};
  double bytes = 0;
};

struct OutTreePacking {
  std::vector<OutTree> trees = {};  ///< heaviest first; the weights sum to 1
  double busy_us = 0;               ///< of the busiest link or group, when all data takes its trees
  /// When all data is everywhere, where that is the aim: trees then end together.
  std::optional<double> finish_us = {};
  int iterations = 0;  ///< masters solved
};

/// No packing of out-trees is busy for less: the data over the least cut between the root and a destination
/// (Edmonds, "Edge-disjoint branchings", 1973). A maximum flow for each destination.
double least_busy_us(const Topology& topology, const RootedData& data);
/// More of them take long.
inline constexpr std::size_t kMostCutDestinations = 256;

/// How much shallow trees are preferred.
/// What is least beside the time that links are busy.
enum class PackingAim {
  busy_time,  ///< nothing else
  depth,      ///< of the deepest tree: where chunks of a tree follow each other evenly, it ends last
  finish,     ///< deep trees take less of the data (finish_packing.hpp)
};

struct DepthPreference {
  double weight = 0;  ///< what the delay of a mean hop counts, as a part of what a tree costs a destination
  PackingAim aim = PackingAim::busy_time;
};

/// The fractional packing of out-trees for which the busiest link or group of links is busy least, by
/// columns: the first trees are priced by multiplicative weights, the others by the master's prices. Where
/// the deepest tree counts, more columns follow for the least mean of a high power of depth. Ends within 0.01
/// % of `enough_us`, after so much work as is good for the size of the graph, or past the deadline.
OutTreePacking pack_out_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data,
                              const DepthPreference& depth, double enough_us,
                              const MakeColumnMaster& make_master, const Deadline& deadline);

}  // namespace rondo
