#pragma once

#include <optional>
#include <span>

#include "rondo/core/topology.hpp"

/// Links whose bandwidth does not divide that of the links before and behind them: transfers through
/// cut-through switches run at the rate of their slowest link, and of two at 25 GB/s only one fits into a
/// NIC of 48 GB/s, where two at 24 GB/s fill it.
namespace rondo {

/// The rate in GB/s, at most `GBps`, at which transfers over a link of that bandwidth should go where they
/// also pass what carries `wider_GBps`, each at least as much: the one by which the product of two shares is
/// greatest, of the link that one transfer takes, and of the one of the wider ones that whole transfers fill
/// least. Of equal ones the fastest; `GBps` itself unless a slower rate fills them better.
double even_rate_GBps(double GBps, std::span<const double> wider_GBps);

/// The fabric with every link slowed down to the rate at which transfers over it should go. Counted as wider
/// are links and groups of shared bandwidth that a transfer may pass without one that is slower. Nothing
/// where every link keeps its bandwidth, or where bandwidth changes. What follows the rules there does so on
/// `topology` once it has its rates (set_rates() in group_limits.hpp).
std::optional<Topology> with_even_links(const Topology& topology);

}  // namespace rondo
