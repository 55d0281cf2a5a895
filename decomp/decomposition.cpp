#include "rondo/decomp/decomposition.hpp"

#include "rondo/core/error.hpp"

namespace rondo {

// The rows other than the first, each in a file of its own.
DecompositionInfo pop_decomposition();
DecompositionInfo ncflow_decomposition();

namespace {

DecompositionInfo none() {
  return {.name = "none",
          .help = "every problem is solved whole",
          .parts_help = "",
          .is_whole = true,
          .decompose_round = [](const Topology&, const Demand&, int,
                                std::uint64_t) { return Decomposition{{{Part{}}}}; },
          .solve_flow = nullptr};
}

}  // namespace

const std::vector<DecompositionInfo>& decompositions() {
  static const std::vector<DecompositionInfo> rows{none(), pop_decomposition(), ncflow_decomposition()};
  return rows;
}

const DecompositionInfo& find_decomposition(const std::string& name) {
  std::string known;
  for (const DecompositionInfo& row : decompositions()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  throw Error(ExitCode::usage, "decomposition '" + name + "' is unknown; known are: " + known);
}

bool decides(const Decomposition& decomposition, const Part& part, GpuId src, GpuId dst) {
  if (part.where == Part::Where::everywhere) return true;
  const int from = decomposition.cluster_of_gpu[src.index()];
  const int to = decomposition.cluster_of_gpu[dst.index()];
  return part.where == Part::Where::between_clusters ? from != to : from == to && from == part.cluster;
}

}  // namespace rondo
