#pragma once

#include <vector>

#include "copy_graph.hpp"
#include "rondo/core/ids.hpp"

namespace rondo {

/// Out-trees from `root`, each by its arcs, a parent's before its children's.
using ArcsOfTrees = std::vector<std::vector<int>>;

/// Makes the longest of all paths from the root shorter and keeps what the trees reach and how many of them
/// each arc carries at most: a node is entered by another arc that has room, or two trees exchange the arcs
/// by which they enter it, as long as the longer of the paths through it gets shorter. `carried`: per arc the
/// trees that it may carry; `delay_us`: per arc, what its start is later for its end.
ArcsOfTrees shallower_trees(const CopyGraph& graph, NodeId root, const std::vector<int>& carried,
                            const std::vector<double>& delay_us, const ArcsOfTrees& trees);

}  // namespace rondo
