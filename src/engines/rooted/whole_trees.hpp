#pragma once

#include <optional>

#include "copy_graph.hpp"
#include "out_tree_packing.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

inline constexpr std::size_t kMostGpusOfWholeTrees = 8192;

/// Whether whole trees may be looked for: all arcs are links, all nodes want the data, no groups share
/// bandwidth, and there are at most kMostGpusOfWholeTrees.
bool may_have_whole_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data);

/// A few trees of equal weight that together keep the links busy for `busy_us`, which no packing is below:
/// every link carries whole trees, so that chunks need not wait for each other (Edmonds, "Edge-disjoint
/// branchings", 1973; by the condition of Berczi and Frank, "Packing arborescences", 2010). They grow side by
/// side, those GPUs first that are reached soonest, so that all of them are shallow. Nothing where no number
/// of trees up to 32 fits.
std::optional<OutTreePacking> pack_whole_trees(const Topology& topology, const CopyGraph& graph,
                                               const RootedData& data, double busy_us);

}  // namespace rondo
