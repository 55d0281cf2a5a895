#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// The hops over switches at rates that fill links of different bandwidth alike: all over the same switches,
/// or switches that lead to each other, have one rate, of which the slowest of their links carries one, two
/// or three at a time and the others whole numbers too, as nearly as that goes with at most `most` transfers
/// on a link. A hop over a link that is slower yet has that one's bandwidth. Hops over one link, over links
/// that are all as fast, or over one that changes, are as they were.
std::vector<Hop> at_even_rates(const Topology& topology, std::span<const Hop> hops, int most);

}  // namespace rondo
