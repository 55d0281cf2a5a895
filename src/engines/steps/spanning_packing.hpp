#pragma once

#include <utility>
#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// What becomes of the rest of a link over which a transfer goes at the rate of another, slower one: other
/// transfers have it at the same time, or it is lost.
enum class LinkUse { shared, whole };

/// From one GPU of a tree to another, through switches.
struct MemberArc {
  int from = 0;  ///< members, by their positions
  int to = 0;
  std::vector<LinkId> links = {};
};

/// A tree, or two with one root, that this share of the data takes.
struct WeightedTree {
  double weight = 0;
  int root = -1;                       ///< -1: any; the tree's edges are then listed both ways
  std::vector<MemberArc> gather = {};  ///< along which sums come to the root
  std::vector<MemberArc> spread = {};  ///< along which results leave it
};

struct SpanningPacking {
  std::vector<WeightedTree> trees = {};  ///< heaviest first; the weights sum to 1
  double us_per_byte = 0;                ///< in which the links carry the data along all trees
  double bound_us_per_byte = 0;          ///< no packing takes less; 0: not known
  int iterations = 0;
};

/// The fractional packing of spanning trees over `members` for which the busiest link or group of links is
/// busy least, when sums go in along a tree and results go out along it (Tutte and Nash-Williams, 1961), by
/// columns: the master chooses weights, its prices the next minimum spanning tree. Within 0.01 %, or as far
/// as `most_iterations` and the deadline let it. Throws Error(unavailable) where switches alone do not
/// connect the members both ways.
SpanningPacking pack_spanning_trees(const Topology& topology, const std::vector<GpuId>& members,
                                    const MakeColumnMaster& make_master, int most_iterations,
                                    const Deadline& deadline, LinkUse use = LinkUse::shared);

/// The same of pairs of trees with one root each, which need no edges that lead both ways: in-trees and
/// out-trees may go over different links. Throws Error(unavailable) where no GPU reaches all others and is
/// reached by all.
SpanningPacking pack_rooted_trees(const Topology& topology, const std::vector<GpuId>& members,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline, LinkUse use = LinkUse::shared);

/// The same of trees that may go over GPUs that are no members, and are used both ways. Ends of arcs are GPU
/// numbers. The trees that are priced need not be the cheapest, and so the packing need not be the optimum.
SpanningPacking pack_relay_trees(const Topology& topology, const std::vector<GpuId>& members,
                                 const MakeColumnMaster& make_master, int most_iterations,
                                 const Deadline& deadline, LinkUse use = LinkUse::shared);

}  // namespace rondo
