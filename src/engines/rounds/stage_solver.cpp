#include "stage_solver.hpp"

#include <algorithm>

#include "rondo/parallel/map_parts.hpp"

namespace rondo {
namespace {

constexpr std::size_t kRemembered = 64;  ///< tasks besides those of the stage

}  // namespace

std::vector<PartAnswer> StageSolver::solve(const std::vector<PartTask>& tasks, bool has_plan,
                                           const SolveLimits& limits) {
  std::vector<PartAnswer> answers(tasks.size());
  std::vector<std::size_t> answered_by(tasks.size());  ///< where in remembered_
  std::vector<std::size_t> to_solve;
  std::vector<double> work;
  for (std::size_t p = 0; p < tasks.size(); ++p) {
    const PartTask& task = tasks[p];
    if (!task.refusal.empty()) continue;
    const auto same = std::find_if(remembered_.begin(), remembered_.end(), [&](const auto& old) {
      return old.first.problem == task.problem && old.first.start == task.start;
    });
    answered_by[p] = static_cast<std::size_t>(same - remembered_.begin());
    if (same != remembered_.end()) continue;
    remembered_.emplace_back(task, PartResult{});  // the result follows below
    answers[p].solved = true;
    to_solve.push_back(p);
    work.push_back(static_cast<double>(task.problem.chunks.size() * task.problem.paths.size()));
  }
  const auto outcomes = map_parts(communicator_, work, [&](std::size_t i) {
    return to_message(solve_part(tasks[to_solve[i]], has_plan, tools_, limits));
  });
  for (std::size_t i = 0; i < to_solve.size(); ++i) {
    if (outcomes[i].error) throw *outcomes[i].error;
    PartAnswer& answer = answers[to_solve[i]];
    answer.rank = outcomes[i].rank;
    answer.seconds = outcomes[i].seconds;
    remembered_[answered_by[to_solve[i]]].second = from_message<PartResult>(outcomes[i].value);
  }
  for (std::size_t p = 0; p < tasks.size(); ++p) {
    if (tasks[p].refusal.empty()) answers[p].result = remembered_[answered_by[p]].second;
  }
  while (remembered_.size() > kRemembered) remembered_.pop_front();
  return answers;
}

}  // namespace rondo
