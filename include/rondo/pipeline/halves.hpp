#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// Sums for several GPUs each in two halves: sums for one GPU each, then from there to all that want them.
namespace rondo {

/// One half of a problem: sums of GPUs for one of them each, or what that one then has for the others.
struct Halves {
  Demand gathering;
  Demand spreading;
  int parts = 0;  ///< of a contribution, one for each GPU that adds one up
};

/// Every GPU that wants a sum adds up one part of it and spreads that. Nothing where other shapes are asked.
std::optional<Halves> halves_of(const Demand& demand);

/// The same with `roots`, ascending, alone to add parts up; nothing where one of them does not want a sum.
std::optional<Halves> halves_at(const Demand& demand, const std::vector<GpuId>& roots);

/// `first`, and then `second`, each transfer as early as their order allows; replayed. Chunks of `second`
/// that are alike are exchanged where that ends earlier: the first that leaves is the one that is there
/// first. `whose`: for errors.
Schedule one_after_the_other(const Topology& topology, const Demand& demand, std::vector<Send> first,
                             const ProvenSchedule& second, const std::string& whose);

/// A schedule that spreads data, run backwards over the opposite links of its topology and timed anew there:
/// `sums` for one GPU each, of as many chunks. Nothing where a link has no opposite one, or the order does
/// not work there.
std::optional<ProvenSchedule> sums_backwards(const ProvenSchedule& spreading, const Demand& sums);
/// The other way round: what spreads, from sums for one GPU each.
std::optional<ProvenSchedule> spreading_backwards(const ProvenSchedule& sums, const Demand& spreading);

/// `demand`, sums for several GPUs each, from schedules of its halves on one topology: both as they are, if
/// they have as many chunks, or one of them and that one backwards, whichever ends first; without a bound.
/// Nothing where none of that works, or they are of other data.
std::optional<ProvenSchedule> in_halves(const Demand& demand, const ProvenSchedule* gathering,
                                        const ProvenSchedule* spreading);

}  // namespace rondo
