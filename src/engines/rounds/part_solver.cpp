#include "part_solver.hpp"

#include <algorithm>
#include <iterator>

namespace rondo {
namespace {

constexpr std::int64_t kNodes = 20;  ///< of branch and bound, a part
constexpr double kRelativeGap = 1e-3;
/// Simplex iterations x rows of a part's model: a few seconds where there is a plan to fall back to, more
/// where there is none.
constexpr std::int64_t kIterationWork = 40'000'000;
constexpr std::int64_t kIterationWorkWithoutPlan = 2'000'000'000;

}  // namespace

PartResult solve_part(const PartTask& task, bool has_plan, const Toolbox& tools,
                      const SolveLimits& user_limits) {
  const BuiltRound built = tools.formulation.round("look_ahead_round")(task.problem);
  PartResult result;
  result.columns = built.model.num_columns();
  result.rows = built.model.num_rows();
  result.starts = task.start;
  const auto start = built.encode(task.start);
  const bool has_start = start && !task.start.empty();
  if (has_start) result.before = objective_of(built.model, *start);

  SolveLimits limits = user_limits;
  limits.relative_gap = kRelativeGap;
  if (limits.max_nodes < 0) limits.max_nodes = kNodes;
  limits.max_iterations = std::max<std::int64_t>(
      1000, (has_plan ? kIterationWork : kIterationWorkWithoutPlan) / std::max<std::int64_t>(1, result.rows));
  const Solution solution = tools.milp->solve(built.model, limits, has_start ? &*start : nullptr);
  result.nodes = solution.nodes;
  result.iterations = solution.iterations;
  result.outcome = to_string(solution.status);
  if (solution.x.empty()) return result;
  result.after = solution.objective;
  if (!has_start || solution.objective < result.before - 1e-3) result.starts = built.decode(solution);
  return result;
}

std::int64_t changed(std::vector<RoundStart> a, std::vector<RoundStart> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<RoundStart> missing;
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(missing));
  return static_cast<std::int64_t>(missing.size());
}

}  // namespace rondo
