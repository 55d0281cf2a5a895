#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// An out-tree from where data is to all that want it, over any GPUs between: hops in an order in which each
/// begins at the root or where one before it ends.
struct SteinerTree {
  double weight = 0;                           ///< the share of the data that takes it
  std::vector<std::vector<LinkId>> hops = {};  ///< links from GPU to GPU, through switches
};

/// Data of one origin for the same destinations.
struct SteinerBlock {
  GpuId origin = {};
  std::vector<GpuId> destinations = {};
  double bytes = 0;
  std::vector<std::size_t> contributions = {};  ///< of the demand
  std::vector<SteinerTree> trees = {};          ///< heaviest first; the weights sum to 1
};

struct SteinerPacking {
  std::vector<SteinerBlock> blocks = {};
  double busy_us = 0;  ///< of the busiest link or group of links, when all data takes its trees
  int iterations = 0;  ///< masters solved
};

/// The fractional packing of out-trees for which the busiest link or group of links is busy least, by
/// columns: the master chooses weights, its prices the next tree of every block, to which the destination
/// that is cheapest to reach is joined until all are (Takahashi and Matsuyama, "An approximate solution for
/// the Steiner problem in graphs", Math. Japonica 24, 1980). Trees that are not the cheapest ones are priced
/// so, and so the result need not be the optimum; nor do switches copy. Ends where a round of trees promises
/// less than 0.1 %, or after `most_iterations`, or past the deadline.
SteinerPacking pack_steiner_trees(const Topology& topology, const Demand& demand,
                                  const MakeColumnMaster& make_master, int most_iterations,
                                  const Deadline& deadline);

}  // namespace rondo
