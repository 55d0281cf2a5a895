#pragma once

#include <optional>

#include "copy_graph.hpp"
#include "out_tree_packing.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Whether interleaved trees may be looked for: no switch copies, and the work is moderate.
bool may_interleave_trees(const Topology& topology, const CopyGraph& graph, const RootedData& data);

/// A few trees of equal weight that keep the busiest link or group busy for `busy_us`, where switches do not
/// copy: a GPU sends in one tree all that its links carry and only receives in the others, as in the two
/// trees of Sanders, Speck and Traeff ("Two-tree algorithms for full bandwidth broadcast, reduction and
/// scan", Parallel Computing 35, 2009); one tree is a chain where GPUs have one link. They grow side by side,
/// GPUs that send first, each as soon as can be. Nothing where no number of trees up to 8 was seen to fit.
std::optional<OutTreePacking> interleave_trees(const Topology& topology, const CopyGraph& graph,
                                               const RootedData& data, double busy_us);

}  // namespace rondo
