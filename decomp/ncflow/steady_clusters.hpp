#pragma once

#include <vector>

#include "rondo/decomp/decomposition.hpp"

namespace rondo {

/// The steady-state flow of unicast demand by clusters. First the flow between clusters, each of which is one
/// node then; its paths say what enters and leaves a cluster on which link. Then the flow inside every
/// cluster: from its GPUs and where data enters, to its GPUs and where data leaves. All pairs of GPUs of two
/// clusters share the paths between these in the same proportions, so that what leaves one cluster is what
/// enters the next. Clusters and the links between them have no capacity in common: the longest time counts.
SolvedFlow steady_flow_by_clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                                   const SolveFlows& solve);

}  // namespace rondo
