#include "clusters.hpp"
#include "rondo/core/error.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "steady_clusters.hpp"
#include "timed_clusters.hpp"

/// NCFlow (NSDI 2021): first one problem between clusters of GPUs, then every cluster's own.
namespace rondo {
namespace {

Decomposition decompose_clusters(const Topology& topology, const Demand&, int parts, std::uint64_t seed) {
  Decomposition result{{{}, {}}, clusters_of_gpus(topology, parts, seed)};
  result.stages[0].push_back({"between clusters", Part::Where::between_clusters});
  for (int c = 0; c < num_clusters(result.cluster_of_gpu); ++c)
    result.stages[1].push_back({"cluster " + std::to_string(c), Part::Where::inside_cluster, c});
  return result;
}

SolvedFlow flow_by_clusters(const Instance& instance, int parts, std::uint64_t seed,
                            const SolveFlows& solve) {
  if (!instance.topology->shared_bandwidth().empty()) {
    throw Error(ExitCode::unavailable,
                "ncflow takes flows apart where no bandwidth is shared; use --decompose pop");
  }
  const std::vector<int> cluster_of_gpu = clusters_of_gpus(*instance.topology, parts, seed);
  return instance.grid ? timed_flow_by_clusters(instance, cluster_of_gpu, solve)
                       : steady_flow_by_clusters(instance, cluster_of_gpu, solve);
}

}  // namespace

DecompositionInfo ncflow_decomposition() {
  return {.name = "ncflow",
          .help = "between the chassis first, then inside each; METIS where there are no chassis (NCFlow)",
          .parts_help = "of ncflow where there are no chassis (0: one for 8 GPUs)",
          .decompose_round = decompose_clusters,
          .solve_flow = flow_by_clusters};
}

}  // namespace rondo
