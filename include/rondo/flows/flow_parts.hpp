#pragma once

#include <cstdint>
#include <vector>

#include "rondo/decomp/decomposition.hpp"
#include "rondo/model/toolbox.hpp"
#include "rondo/parallel/communicator.hpp"

/// Linear programs of flows by origin, whole or taken apart by commodity blocks.
namespace rondo {

/// PoP (SOSP 2021) on commodity blocks: the data of each origin goes to one part, the origins of a chassis
/// evenly where all chassis have as many, and every part has an equal share of every link, so that the sum of
/// the parts' flows fits. Parts without data are left out.
std::vector<Instance> pop_parts(const Instance& instance, const Decompose& decompose, int parts,
                                std::uint64_t seed);

/// Solves `formulation` of the instance by tools.lp, or as tools.solve_in_parts does. Collective where
/// tools.on_all_ranks.
SolvedFlow solve_flow(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                      const Toolbox& tools);

/// Collective. Each of the parts, dealt over the ranks.
std::vector<SolvedFlow> solve_each(const std::vector<Instance>& parts, const Formulation& formulation,
                                   const SolveLimits& limits, const Solver& solver,
                                   const Communicator& communicator);

/// Collective. The same, and the sum of their flows.
SolvedFlow solve_parts(const std::vector<Instance>& parts, const Formulation& formulation,
                       const SolveLimits& limits, const Solver& solver, const Communicator& communicator);

/// Collective. NCFlow (NSDI 2021): first the flow between clusters, each of which is one node then; its paths
/// say what enters and leaves a cluster on which link, and in a flow over time when. Then the flow inside
/// every cluster, on the ranks: from its GPUs and where data enters, to its GPUs and where data leaves. All
/// pairs of GPUs of two clusters share the paths between these in the same proportions, so that what leaves
/// one cluster is what enters the next. Clusters and the links between them have no capacity in common: of
/// steady-state flows the longest time counts, of flows over time the least share that is delivered. Throws
/// Error(unavailable) for shared bandwidth, and over time for clusters that do not hang together.
SolvedFlow solve_by_clusters(const Instance& instance, const std::vector<int>& cluster_of_gpu,
                             const Formulation& formulation, const SolveLimits& limits, const Solver& solver,
                             const Communicator& communicator);

}  // namespace rondo
