#pragma once

#include <map>
#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/flows/flow_parts.hpp"

/// What NCFlow's clusters have in common for flows with and without time.
namespace rondo {

/// Per node its cluster, -1 between clusters: GPUs as given, and switches that only have links with one
/// cluster belong to it.
std::vector<int> clusters_of_nodes(const Topology& topology, const std::vector<int>& cluster_of_gpu);

/// Bytes by origin.
using Shares = std::map<GpuId, double>;
double sum_of(const Shares& shares);

/// See solve_by_clusters(), for instances with a grid.
SolvedFlow solve_by_clusters_over_time(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                                       const Formulation& formulation, const SolveLimits& limits,
                                       const Solver& solver, const Communicator& communicator);

}  // namespace rondo
