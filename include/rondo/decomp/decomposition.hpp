#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/toolbox.hpp"

/// How problems are taken apart into subproblems and the solutions of these put together. Pure: depends on
/// the problem, the number of parts and the seed, never on the ranks.
namespace rondo {

/// What one part of a round decides about: some of the data, over some of the topology, with some of each
/// link's time.
struct Part {
  enum class Where : std::uint8_t { everywhere, between_clusters, inside_cluster };

  std::string name = "whole";
  Where where = Where::everywhere;
  int cluster = -1;  ///< for inside_cluster
  /// The part carries the chunks whose share it is (Decomposition::share_of_chunk) and has each link in every
  /// `shares`-th slot of its time: 1/shares of its bandwidth.
  int share = 0;
  int shares = 1;
};

/// The parts of a stage do not depend on each other; a stage goes by what the stages before it decided.
struct Decomposition {
  std::vector<std::vector<Part>> stages;
  std::vector<int> cluster_of_gpu = {};  ///< empty where there are no clusters
  std::vector<int> share_of_chunk = {};  ///< empty where every part decides about all chunks
};

/// Whether a transfer from one GPU to another is for the part to decide.
bool decides(const Decomposition& decomposition, const Part& part, GpuId src, GpuId dst);

/// Solves flows that do not depend on each other; returns one solution a flow, in their order.
using SolveFlows = std::function<std::vector<SolvedFlow>(const std::vector<Instance>&)>;

/// A row of decompositions(). `parts`: how many, 0 = the decomposition's own choice. Both functions throw
/// Error(usage) for a number of parts that the topology cannot have, saying which it can.
struct DecompositionInfo {
  std::string name;
  std::string help;
  std::string parts_help;  ///< what `parts` counts and its default; empty where there is nothing to choose
  bool is_whole = false;   ///< nothing is taken apart
  /// The parts that engine rounds takes each of its rounds apart into; absent where it cannot.
  std::function<Decomposition(const Topology&, const Demand&, int parts, std::uint64_t seed)> decompose_round;
  /// The flow of unicast demand of engines lp and flow from those of its parts, without a dual bound; its
  /// status is the worst of theirs, and it has entries where that is optimal. Absent where it cannot, or has
  /// no need to. Throws Error(unavailable) for instances that it does not support.
  std::function<SolvedFlow(const Instance&, int parts, std::uint64_t seed, const SolveFlows&)> solve_flow;
};

/// "none", "pop", "ncflow".
const std::vector<DecompositionInfo>& decompositions();
/// Throws Error(usage) listing the known names.
const DecompositionInfo& find_decomposition(const std::string& name);

}  // namespace rondo
