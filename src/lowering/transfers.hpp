#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo::lowering {

/// A chunk on its way from one GPU to another, over any switches between.
struct Transfer {
  int chunk = -1;
  int src = -1;  ///< GPU numbers
  int dst = -1;
  double start_us = 0;
  double arrival_us = 0;
  int parent = -1;  ///< the transfer that brought the chunk to src; -1: it starts there
};

/// The GPU-to-GPU transfers of a valid schedule, duplicates and detours to nowhere included, without
/// parents.
std::vector<Transfer> join_hops(const Topology& topology, std::span<const Send> sends);

/// Keeps, for every chunk, the tree of first arrivals that its destinations need, and orders all transfers by
/// start, parents first. Throws Error(bad_data) when a destination is never reached.
std::vector<Transfer> grow_trees(const Demand& demand, const std::vector<Transfer>& transfers);

/// Sends what goes between GPUs that neither share a row nor a column through one that shares both, so that
/// a GPU has at most `max_peers` peers in each direction: rows are chassis where those are equal in size,
/// else the GPUs stand in a square. Transfers come back as from join_hops. Throws Error(unavailable) when
/// that is not enough, or when a way is missing in the topology.
std::vector<Transfer> limit_peers(const Topology& topology, std::vector<Transfer> transfers, int max_peers);

}  // namespace rondo::lowering
