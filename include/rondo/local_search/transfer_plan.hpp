#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// A schedule as the decisions that it follows from, for search in the neighbourhood of one: which chunk
/// takes which hop after which, whoever found it. All functions are pure.
namespace rondo {

/// A chunk over one hop.
struct PlannedTransfer {
  ChunkId chunk;
  int hop = 0;     ///< of PlanSpace::hops
  int cause = -1;  ///< the transfer that brings the chunk to where this one starts; -1: that is its origin
  double start_us = 0;
};

/// Smaller is better.
struct PlanQuality {
  double finish_us = 0;
  /// Over links, the mean of (share of the finish time in which it is taken)^8 x (time of its last end):
  /// falls where a link that limits the finish is freed of something, though others keep the finish where it
  /// is.
  double pressure_us = 0;
  friend auto operator<=>(const PlanQuality&, const PlanQuality&) = default;
};

struct TransferPlan {
  std::vector<PlannedTransfer> transfers = {};  ///< a cause stands before what it causes
  PlanQuality quality = {};
};

/// What plans of one demand are made of.
struct PlanSpace {
  const Topology* topology = nullptr;
  Demand demand;
  std::vector<Hop> hops = {};
  std::vector<std::vector<int>> into = {};  ///< hops, per GPU

  double bytes(const PlannedTransfer& t) const { return demand.bytes(t.chunk); }
  const Hop& hop(const PlannedTransfer& t) const { return hops[static_cast<std::size_t>(t.hop)]; }
  double duration_us(const PlannedTransfer& t) const { return hop(t).duration_us(bytes(t)); }
  double arrival_us(const PlannedTransfer& t) const { return t.start_us + duration_us(t); }
  /// Adds a hop over a path that none of the hops takes yet.
  int add(Hop hop);
};

/// The hops of the topology (of HopTable, where there are not too many GPUs for it) for plans of `demand`.
/// The topology has to outlive it.
PlanSpace make_plan_space(const Topology& topology, const Demand& demand);

/// The same hops for plans in another number of chunks.
PlanSpace with_chunks(const PlanSpace& space, int chunks_per_contribution);

/// Of the transfers at their starts.
PlanQuality quality_of(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space);

/// The plan behind a schedule that the replay accepts, without what the demand does not need; paths that are
/// not among the hops yet are added to `space`. Nothing where a switch copies, as such transfers have more
/// than one end, or where a chunk waits in one.
std::optional<TransferPlan> plan_of(const Schedule& schedule, PlanSpace& space);

Schedule schedule_of(const TransferPlan& plan, const PlanSpace& space);

/// The plan in chunks of half the bytes, both halves on the path of the whole, one right after the other;
/// starts are an order, no times. `halves`: the space of twice as many chunks.
TransferPlan split_in_halves(const TransferPlan& plan, const PlanSpace& halves);

/// Drops transfers that neither bring a chunk to a destination for the first time nor cause one that does.
void drop_useless(TransferPlan& plan, const PlanSpace& space);

}  // namespace rondo
