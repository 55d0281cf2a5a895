#pragma once

#include <vector>

#include "copy_graph.hpp"
#include "rondo/core/ids.hpp"

namespace rondo {

/// Makes an out-tree cheaper by local search, with no path from the root longer than `most_delay`: a node is
/// entered by another arc, straight or through a node that the tree has not reached, which is left when
/// nothing needs it any more; or from elsewhere, and a node above from it. `arcs`: a parent's before its
/// children's, as in the result; `is_wanted`: per node; `cost`, `delay`: per arc.
std::vector<int> cheaper_within(const CopyGraph& graph, NodeId root, const std::vector<char>& is_wanted,
                                const std::vector<double>& cost, const std::vector<double>& delay,
                                double most_delay, const std::vector<int>& arcs);

}  // namespace rondo
