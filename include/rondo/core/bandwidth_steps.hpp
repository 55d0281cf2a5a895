#pragma once

#include <limits>
#include <span>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Of a link at a time, its bandwidth then: that of the last step by then.
double bandwidth_at(const Link& link, double t_us);

/// When `bytes` that flow over the links of a hop without store-and-forward switches from `from_us` on have
/// left its first link, if the bandwidth that each link has when they pass it is all theirs: at sender's time
/// x they flow with the least over the links of bandwidth(x + latencies before), at most `most_GBps`.
/// Infinity where some link stays down.
double flown_by_us(const Topology& topology, std::span<const HopLink> links, double bytes, double from_us,
                   double most_GBps = std::numeric_limits<double>::infinity());

}  // namespace rondo
