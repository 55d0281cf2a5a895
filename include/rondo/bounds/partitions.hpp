#pragma once

#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Partitions for the sums that several GPUs want, those of least bandwidth of the links counted over k - 1
/// first, for each side as far as the switches allow it. Candidates are single GPUs, chassis and what fast
/// links join; where the topology is small enough for it, the least of all is found from there by Dinkelbach
/// steps on the quotient, each a Dilworth truncation of the bandwidth into (out of) a set by one minimum cut
/// a GPU (Cunningham, "Optimal attack and reinforcement of a network", J. ACM 32, 1985). It is the least
/// where every switch has as much bandwidth in as out and none is barred from being outside; else a good one.
/// Past `deadline` what has been found by then. Nothing where no sum is wanted by several GPUs.
std::vector<PartitionCertificate> find_partitions(const Topology& topology, const Demand& demand,
                                                  const Deadline& deadline = {});

}  // namespace rondo
