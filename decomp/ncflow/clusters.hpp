#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "rondo/core/topology.hpp"

/// NCFlow's clusters: what rounds and flows, with and without time, have in common.
namespace rondo {

/// Per GPU its cluster, 0, 1, ... in the order of their first GPU: the chassis, or `parts` (0: one for 8
/// GPUs, at least 2) of METIS where the topology has less than two chassis. Throws Error(usage) for `parts`
/// that contradict the chassis or exceed the GPUs.
std::vector<int> clusters_of_gpus(const Topology& topology, int parts, std::uint64_t seed);

/// How many there are.
int num_clusters(const std::vector<int>& cluster_of);

/// Per node its cluster, -1 between clusters: GPUs as given, and switches that only have links with one
/// cluster belong to it.
std::vector<int> clusters_of_nodes(const Topology& topology, const std::vector<int>& cluster_of_gpu);

/// Bytes by origin.
using Shares = std::map<GpuId, double>;
double sum_of(const Shares& shares);

}  // namespace rondo
