#include "combined_figures.hpp"

#include <algorithm>

namespace rondo {

SolvedFlow combined_figures(const std::vector<SolvedFlow>& parts) {
  SolvedFlow all{SolveStatus::optimal};
  all.objective = -kInfinity;
  for (const SolvedFlow& part : parts) {
    if (part.status != SolveStatus::optimal) all.status = part.status;
    all.objective = std::max(all.objective, part.objective);
    all.iterations = std::max(all.iterations, part.iterations);
    all.columns = std::max(all.columns, part.columns);
    all.largest_part_s = std::max(all.largest_part_s, part.largest_part_s);
    all.field.finish_us = std::max(all.field.finish_us, part.field.finish_us);
  }
  return all;
}

}  // namespace rondo
