#pragma once

#include <map>
#include <span>
#include <vector>

#include "copy_graph.hpp"
#include "rondo/flows/link_rows.hpp"
#include "rondo/model/column_master.hpp"

/// Out-trees, by their arcs with a parent's before its children's, as columns of packings.
namespace rondo {

/// Per arc what the data of `rows` over it costs at these prices per us, one per row.
std::vector<double> arc_costs(const CopyGraph& graph, const LinkRows& rows, std::span<const double> price);

/// Per row that the tree takes, the time that the data of `rows` takes over it, in units of `unit_us`.
std::map<int, double> row_loads(const CopyGraph& graph, const LinkRows& rows, const std::vector<int>& arcs,
                                double unit_us);

MasterColumn column_of(const std::map<int, double>& loads);

/// From the root to the last of all nodes. `delay_us`: per arc; `reached_us`: per node, of which that of the
/// root is 0, the others are written.
double tree_depth_us(const CopyGraph& graph, const std::vector<double>& delay_us,
                     const std::vector<int>& arcs, std::vector<double>& reached_us);

/// The same for all orders of the arcs.
std::vector<int> tree_key(std::vector<int> arcs);

}  // namespace rondo
