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
    for (const auto& way : problem.ways) {
      const int through = at[index(way.src)] + way.landing;
      if (holds[index(way.dst)] != 0 || at[index(way.src)] >= problem.num_epochs ||
          through >= at[index(way.dst)]) {
        continue;
      }
      at[index(way.dst)] = through;
      changed = true;
    }
  }
  return at;
}

}  // namespace rondo
