#pragma once

#include <optional>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// ReduceScatter and Reduce are AllGather and Broadcast on the transposed topology, run backwards: where data
/// spread from a GPU along a tree, sums come together along it. So what makes and bounds schedules of
/// multicast demand does so for sums for one GPU each (TACCL, section 5.3; FORMATS.md 3, Combining).
namespace rondo {

/// A link of the group whose latency is not the first one's: a shared figure limits rates at one instant of
/// the links' near ends; backwards it would be one of their far ends, which is another one where latencies
/// differ.
std::optional<LinkId> uneven_link(const Topology& topology, const SharedBandwidth& group);

/// Whether backwards is the same: bandwidth does not change, nothing is ready later than at 0, the links of
/// each group have one latency. Of the topology and the demand transposed() then throws nothing of the kind.
bool is_transposable(const Topology& topology, const Demand& demand);

/// The same nodes; every link turned round under its number; switches that may copy may add instead and the
/// other way round. Throws Error(unavailable) where backwards is not the same: bandwidth that changes, groups
/// of links whose latencies differ.
Topology transposed(const Topology& topology);

/// Of a demand of kind reduction: every sum becomes data of its destination that its sources want. Of unicast
/// demand: source and destination change places. ReduceScatter and Reduce become the collective that they are
/// the reverse of, all other demand is custom. Throws Error(unavailable) for ready times other than 0,
/// Error(internal) for other kinds of demand.
Demand transposed(const Demand& demand);

/// The sends of a schedule of the transposed problem that ends at `finish_us`, run backwards: sends of the
/// problem itself, in canonical order, that end by `finish_us`. Of every chunk the first arrival at a GPU
/// counts, the rest is left out. Transfers that join in switches are numbered.
std::vector<Send> reversed_in_time(const Topology& transposed_topology, const Demand& transposed_demand,
                                   const std::vector<Send>& sends, double finish_us);

/// What a certificate of the problem proves of the transposed one, and the other way round.
Certificate transposed(Certificate certificate);

}  // namespace rondo
