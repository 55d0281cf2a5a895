#include "rondo/model/round_model.hpp"

#include <algorithm>

namespace rondo {

std::vector<int> earliest_epochs(const RoundProblem& problem, const RoundProblem::Chunk& chunk) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<int> at(index(problem.num_nodes), kNeverEpoch);
  std::vector<char> holds(index(problem.num_nodes), 0);
  for (const auto& holder : chunk.holders) {
    at[index(holder.node)] = std::max(0, holder.epoch);
    holds[index(holder.node)] = 1;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& path : problem.paths) {
      const int through = at[index(path.src)] + path.landing;
      if (holds[index(path.dst)] != 0 || at[index(path.src)] >= problem.num_epochs ||
          through >= at[index(path.dst)]) {
        continue;
      }
      at[index(path.dst)] = through;
      changed = true;
    }
  }
  return at;
}

}  // namespace rondo
