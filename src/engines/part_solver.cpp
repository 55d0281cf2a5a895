#include "part_solver.hpp"

#include <algorithm>
#include <iterator>

#include "packing.hpp"

namespace rondo {
namespace {

constexpr std::int64_t kNodes = 20;  ///< of branch and bound, a part
constexpr double kRelativeGap = 1e-3;
/// Simplex iterations x rows of a part's model: some seconds where there is a plan to fall back to, more
/// where not.
constexpr std::int64_t kIterationWork = 40'000'000;
constexpr std::int64_t kIterationWorkWithoutPlan = 2'000'000'000;

}  // namespace

Bytes pack(const PartResult& result) {
  Packer packer;
  packer.put(result.columns);
  packer.put(result.rows);
  packer.put(result.nodes);
  packer.put(result.iterations);
  packer.put(result.before);
  packer.put(result.after);
  packer.put(result.outcome.size());
  for (const char c : result.outcome) packer.put(c);
  packer.put(result.starts.size());
  for (const RoundStart& start : result.starts) packer.put(start);
  return packer.take();
}

PartResult unpack(const Bytes& bytes) {
  Unpacker unpacker(bytes);
  PartResult result;
  result.columns = unpacker.get<std::int64_t>();
  result.rows = unpacker.get<std::int64_t>();
  result.nodes = unpacker.get<std::int64_t>();
  result.iterations = unpacker.get<std::int64_t>();
  result.before = unpacker.get<double>();
  result.after = unpacker.get<double>();
  for (auto n = unpacker.get<std::size_t>(); n > 0; --n) result.outcome += unpacker.get<char>();
  for (auto n = unpacker.get<std::size_t>(); n > 0; --n) result.starts.push_back(unpacker.get<RoundStart>());
  return result;
}

PartResult solve_part(const PartTask& task, bool has_plan, const Toolbox& tools,
                      const SolveLimits& user_limits) {
  const BuiltRound built = tools.look_ahead_round(task.problem);
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
