#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// A chunk on its way from one GPU to one or more, at once through all switches between them.
struct Transfer {
  struct TreeLink {
    LinkId link;
    int parent = -1;  ///< the position in `links` of the link that enters the switch; -1: it leaves the GPU
  };
  ChunkId chunk;
  int epoch = 0;                ///< of the start
  std::vector<TreeLink> links;  ///< depth-first
};

/// Takes the transfers of a decoded multicast MILP apart; earliest first.
std::vector<Transfer> transfers_of(const Topology& topology, const FlowField& field);

/// Goes back from the demands (TE-CCL's reverse depth-first search) and removes what serves none of them.
/// `transfers` have to be in order of their starts.
void remove_useless(std::vector<Transfer>& transfers, const Topology& topology, const Demand& demand);

/// Starts every transfer, in the given order, as early in continuous time as its links and its chunk allow.
/// Where the transfers are those of a grid, in their order, none is later than there.
Schedule retime(const std::vector<Transfer>& transfers, const Topology& topology, const Demand& demand);

}  // namespace rondo
