#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/model/deadline.hpp"

/// Schedules in slots: few transfers at a time, each as slow as its slot is long. Where paths have many links
/// of about the same load, list scheduling leaves some of them idle whenever a transfer waits for another;
/// in a slot all transfers begin and end together, and every link carries its part of them all the time.
namespace rondo {

/// The slot of every chunk. A link of a GPU has at most `concurrency` chunks in a slot, of which there are as
/// few as that allows. The time of a slot is the greatest load of a link or group in it, and the deal makes
/// the sum of these times small: greedily, then as simulated annealing (Kirkpatrick, Gelatt and Vecchi,
/// Science 220, 1983) that moves only chunks on links with more than their part of the load. Every route has
/// to have one hop. Nothing where the limit of transfers is not met, or the deadline is over.
std::optional<std::vector<int>> deal_to_slots(const Topology& topology, const std::vector<Hop>& hops,
                                              const Demand& demand, const RoutedChunks& routed,
                                              int concurrency, std::uint64_t seed, const Deadline& deadline);

/// Slot after slot, each as soon as its links are free. `hops` are those that the chunks were dealt by, and
/// the sends go over the links of `real`, hop by hop the same with other links of the same figures.
Schedule in_slots(const Topology& topology, const std::vector<Hop>& hops, const std::vector<Hop>& real,
                  const Demand& demand, const RoutedChunks& routed, const std::vector<int>& slot_of_chunk);

}  // namespace rondo
