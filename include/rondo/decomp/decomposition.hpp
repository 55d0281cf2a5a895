#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"

/// Which subproblems a problem is taken apart into. Pure: depends on the problem, the number of parts and the
/// seed, never on the ranks.
namespace rondo {

/// What one part decides about: some of the data, over some of the topology, with some of each link's time.
struct Part {
  enum class Where : std::uint8_t { everywhere, between_clusters, inside_cluster };

  std::string name = "whole";
  Where where = Where::everywhere;
  int cluster = -1;  ///< for inside_cluster
  /// The part carries the chunks whose share it is (Decomposition::share_of_chunk) and has each link in every
  /// `shares`-th slot of its time: 1/shares of its bandwidth, in integer rounds as well as in linear
  /// programs.
  int share = 0;
  int shares = 1;
};

/// The parts of a stage do not depend on each other; a stage goes by what the stages before it decided.
struct Decomposition {
  std::string name;
  std::vector<std::vector<Part>> stages;
  std::vector<int> cluster_of_gpu = {};  ///< empty where there are no clusters
  std::vector<int> share_of_chunk = {};  ///< empty where all chunks are everybody's
};

/// `parts`: 0 = the decomposition's own choice.
using Decompose = std::function<Decomposition(const Topology& topology, const Demand& demand, int parts,
                                              std::uint64_t seed)>;

/// One part.
Decomposition decompose_whole(const Topology& topology, const Demand& demand, int parts, std::uint64_t seed);

/// PoP (SOSP 2021): chunks dealt at random over `parts` (default 4), the chunks of a contribution evenly, so
/// that large clients are split; 1/parts of each link to each part.
Decomposition decompose_pop(const Topology& topology, const Demand& demand, int parts, std::uint64_t seed);

/// NCFlow (NSDI 2021): first one problem between clusters, in which a cluster receives a chunk once, then
/// every cluster's own. Clusters are the chassis, or `parts` (default: one for 8 GPUs, at least 2) of METIS
/// where the topology has less than two chassis. Throws Error(usage) for `parts` that contradict the chassis
/// or exceed the GPUs.
Decomposition decompose_ncflow(const Topology& topology, const Demand& demand, int parts, std::uint64_t seed);

/// Whether a transfer from one GPU to another is for the part to decide.
bool decides(const Decomposition& decomposition, const Part& part, GpuId src, GpuId dst);

}  // namespace rondo
