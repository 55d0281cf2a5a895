#pragma once

#include <vector>

#include "rondo/decomp/decomposition.hpp"

namespace rondo {

/// As steady_flow_by_clusters(), over time on the instance's grid: the least share counts that is delivered
/// between the clusters or in one of them. Throws Error(unavailable) for clusters whose GPUs do not reach one
/// another inside.
///
/// Between clusters, each of which is one GPU then, as much data flows in the time as can; brought down to
/// the demand this loads the links evenly over time. Its paths say which data leaves and enters a cluster
/// over which link in which epochs: flows that the clusters' own problems have to fit, all to the same share.
/// To let data cross a cluster, whatever enters one between clusters counts as there only after the longest
/// path inside it, and what leaves one is there after such a time.
SolvedFlow timed_flow_by_clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                                  const SolveFlows& solve);

}  // namespace rondo
