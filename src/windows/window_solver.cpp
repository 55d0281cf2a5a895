#include "window_solver.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr std::int64_t kNodes = 20;  ///< of branch and bound
constexpr double kRelativeGap = 1e-3;
constexpr std::int64_t kIterationWork = 30'000'000;  ///< simplex iterations x rows: a few seconds
constexpr double kTaken = 0.5;                       ///< of a binary

}  // namespace

WindowAnswer solve_window(const PlanView& view, const Window& window, const Solver& milp,
                          const SolveLimits& user_limits) {
  const WindowModel built = window_model(view, window);
  WindowAnswer answer;
  answer.columns = built.model.num_columns();
  answer.rows = built.model.num_rows();
  SolveLimits limits = user_limits;
  limits.relative_gap = kRelativeGap;
  if (limits.max_nodes < 0) limits.max_nodes = kNodes;
  limits.max_iterations =
      std::max<std::int64_t>(1000, kIterationWork / std::max<std::int64_t>(1, answer.rows));
  // Without a start: CBC completes none of this size, and nothing is lost where it finds no solution.
  const Solution solution = milp.solve(built.model, limits);
  answer.nodes = solution.nodes;
  answer.iterations = solution.iterations;
  answer.outcome = to_string(solution.status);
  if (solution.x.empty()) return answer;
  const auto value = [&](int column) { return solution.x[index(column)]; };
  answer.lambda_us = value(0);
  const auto& transfers = view.surveyed.plan.transfers;
  for (std::size_t m = 0; m < window.members.size(); ++m) {
    const int i = window.members[m];
    const PlannedTransfer& t = transfers[index(i)];
    answer.members.push_back({i, t.hop, t.cause, value(built.first_start + static_cast<int>(m))});
  }
  for (std::size_t d = 0; d < built.detours.size(); ++d) {
    if (value(built.first_detour + static_cast<int>(d)) < kTaken) continue;
    const Detour& detour = built.detours[d];
    WindowAnswer::Member& member = answer.members[index(detour.member)];
    const double bytes = view.space.bytes(transfers[index(member.transfer)]);
    member.hop = detour.hop;
    member.cause = detour.cause;
    member.start_us =
        value(built.first_arrival + detour.member) - view.space.hops[index(detour.hop)].duration_us(bytes);
    ++answer.detours;
  }
  if (answer.detours == 0) answer.members.clear();  // the order alone is that of the plan
  return answer;
}

}  // namespace rondo
