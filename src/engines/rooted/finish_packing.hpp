#pragma once

#include <functional>
#include <vector>

#include "copy_graph.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/flows/link_rows.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

struct FinishPacking {
  std::vector<std::vector<int>> trees = {};  ///< arcs, a parent's before its children's
  std::vector<double> weight = {};           ///< per tree; they sum to 1
  double finish_us = 0;  ///< when all is everywhere, in chunks as small as `delay_us` has them
  int iterations = 0;    ///< masters solved
};

/// Trees for small costs of arcs (per arc of the graph).
using TreesAtCosts = std::function<std::vector<std::vector<int>>(const std::vector<double>& cost)>;

/// Packs out-trees for the least finish, not for the least busy time alone: trees repeat evenly, as paths do
/// in quickest flows (Ford and Fulkerson, "Flows in Networks", 1962, III.9), and a tree of depth d has
/// stopped by finish - d. So data takes busy time and the mean depth of the trees, weighed by their rates,
/// not that of the deepest. By columns, for a finish that falls until its trees no longer fit in it; a tree
/// is made cheaper at the master's prices by entering one node after another by another arc.
/// `delay_us`: per arc, latency and transmission of a chunk; `is_wanted`: per node; `columns`: at least one
/// tree.
FinishPacking pack_for_finish(const CopyGraph& graph, NodeId root, const LinkRows& rows,
                              const std::vector<double>& delay_us, std::vector<char> is_wanted,
                              std::vector<std::vector<int>> columns, const TreesAtCosts& trees_at,
                              const MakeColumnMaster& make_master, const Deadline& deadline);

}  // namespace rondo
