#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "part_solver.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"
#include "round_parts.hpp"

namespace rondo {

struct PartAnswer {
  PartResult result = {};
  bool solved = false;  ///< by this part's own model; otherwise copied
  int rank = 0;
  double seconds = 0;
};

/// Solves the parts of a stage over the ranks. Problems use local numbers, so parts that symmetry maps to
/// each other, or to parts of recent stages, have equal problems: each is solved once.
class StageSolver {
 public:
  StageSolver(const Toolbox& tools, const Communicator& communicator)
      : tools_(tools), communicator_(communicator) {}

  /// Collective. One answer for each task, empty where PartTask::refusal says why it has no model. Where a
  /// part fails, every rank throws its Error.
  std::vector<PartAnswer> solve(const std::vector<PartTask>& tasks, bool has_plan, const SolveLimits& limits);

 private:
  const Toolbox& tools_;
  const Communicator& communicator_;
  std::deque<std::pair<PartTask, PartResult>> remembered_;
};

}  // namespace rondo
