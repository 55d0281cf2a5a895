#pragma once

#include <vector>

#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// One link of the paths that a transfer can take from a GPU through switches. A transfer is a tree of
/// routes: one that leaves a GPU, and at every switch one or more that continue it. Chunks do not wait in
/// switches, so all times follow from the start of the transfer.
struct TransferRoute {
  int parent = -1;   ///< the route that this one continues; -1: it leaves a GPU
  int section = -1;  ///< the route with which its cut-through section begins
  LinkId link;
  double rate_GBps = 0;    ///< of all links of the section
  double offset_us = 0;    ///< start on this link minus start of the transfer
  double duration_us = 0;  ///< message cost included
  int landing = 0;  ///< epochs from the start of the transfer until a GPU has the whole chunk; 0 at a switch
  std::vector<int> onward = {};

  bool ends_at_gpu() const { return landing > 0; }
};

/// All routes of a topology, each before its continuations. A cut-through section that may run at several
/// rates, depending on the links that take part, appears once for each rate. Throws Error(unavailable) beyond
/// `max_routes`, and where links that one section can join differ in their message costs.
std::vector<TransferRoute> transfer_routes(const Topology& topology, const EpochGrid& grid,
                                           std::size_t max_routes);

}  // namespace rondo
