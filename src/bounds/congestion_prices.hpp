#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Link lengths for metric certificates of unicast demand without an LP: chunks are routed so that loads are
/// even, and a link's length is (load / greatest load)^p / bandwidth, one vector for each of several p. In
/// the optimum of the steady-state flow only fully loaded links have a price, and the multiplicative weights
/// methods for concurrent flow (Garg and Koenemann, SIAM J. Computing 37, 2007) approach its prices in this
/// way. Any lengths give a valid bound, those of routes that are not yet even when `deadline` is over too.
std::vector<std::vector<double>> congestion_prices(const Topology& topology, const Demand& demand,
                                                   const Deadline& deadline);

}  // namespace rondo
