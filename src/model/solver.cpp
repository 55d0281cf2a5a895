#include "rondo/model/solver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"

namespace rondo {

std::string to_string(SolveStatus status) {
  switch (status) {
    case SolveStatus::optimal:
      return "optimal";
    case SolveStatus::feasible:
      return "feasible";
    case SolveStatus::infeasible:
      return "infeasible";
    case SolveStatus::unbounded:
      return "unbounded";
    case SolveStatus::no_solution:
      return "no solution";
    case SolveStatus::failed:
      return "failed";
  }
  return "unknown";
}

void check_solvable(const Solver& solver, const LinearModel& model, const std::vector<double>* start) {
  check_consistent(model);
  if (start != nullptr && start->size() != model.cost.size()) {
    throw Error(ExitCode::internal, fmt::format("{}: a start of {} values for a model of {} columns",
                                                solver.name(), start->size(), model.cost.size()));
  }
  const auto integers =
      std::count_if(model.integer.begin(), model.integer.end(), [](char flag) { return flag != 0; });
  if (integers > 0 && !solver.supports_integer()) {
    throw Error(ExitCode::unavailable,
                fmt::format("{} solves continuous models only, this one has {} integer columns: use a "
                            "solver of integer models such as cbc",
                            solver.name(), integers));
  }
}

}  // namespace rondo
