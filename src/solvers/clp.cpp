#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <coin/ClpSolve.hpp>

#include "coin_matrix.hpp"
#include "rondo/solvers/solvers.hpp"
#include "stop_rule.hpp"
#include "unconstrained.hpp"

namespace rondo {
namespace {

/// CLP's problem status after a solve; see ClpModel::status().
enum ClpStatus { kOptimal = 0, kPrimalInfeasible = 1, kDualInfeasible = 2, kLimit = 3, kEvent = 5 };

std::vector<double> copy(const double* values, int count) {
  return {values, values + count};
}

/// Simplex after presolve. Primal on models that maximise, as the time-expanded flows do (several times
/// faster than dual there, and than barrier with crossover); dual where no cost is negative, as in the
/// steady-state flow (two to ten times faster than primal).
void solve_afresh(ClpSimplex& clp, bool maximises, bool presolve) {
  ClpSolve options;
  options.setSolveType(maximises ? ClpSolve::usePrimal : ClpSolve::useDual);
  options.setPresolveType(presolve ? ClpSolve::presolveOn : ClpSolve::presolveOff);
  options.setSpecialOption(2, 1);  // no signal handler
  clp.initialSolve(options);
}

/// Such a model is never unbounded.
bool feasibility_only(const LinearModel& model) {
  return std::all_of(model.cost.begin(), model.cost.end(), [](double cost) { return cost == 0; });
}

class ClpBackend final : public Solver {
 public:
  std::string name() const override { return "clp"; }
  bool supports_integer() const override { return false; }

  Solution solve(const LinearModel& model, const SolveLimits& limits,
                 const std::vector<double>* start) const override {
    check_solvable(*this, model, start);
    const SolverStop rule(limits);
    if (model.entry_row.empty()) return solve_unconstrained(model);

    ClpSimplex clp;
    clp.setLogLevel(0);
    clp.loadProblem(coin_matrix(model), model.column_lower.data(), model.column_upper.data(),
                    model.cost.data(), model.row_lower.data(), model.row_upper.data());
    ClpStopHandler handler(rule);
    clp.passInEventHandler(&handler);
    if (limits.max_iterations >= 0) {
      clp.setMaximumIterations(as_int(limits.max_iterations));
    }
    if (start != nullptr) {
      clp.setColSolution(start->data());
      clp.primal(1);
    } else {
      const bool maximises =
          std::any_of(model.cost.begin(), model.cost.end(), [](double cost) { return cost < 0; });
      solve_afresh(clp, maximises, true);
      // Presolve cannot always tell infeasible from unbounded.
      const bool ambiguous = clp.status() == kPrimalInfeasible || clp.status() == kDualInfeasible;
      if (ambiguous && !rule.fired() && !feasibility_only(model)) solve_afresh(clp, maximises, false);
    }
    return read(clp, model, rule);
  }

 private:
  static Solution read(const ClpSimplex& clp, const LinearModel& model, const SolverStop& rule) {
    Solution solution;
    solution.iterations = clp.numberIterations();
    solution.seconds = rule.seconds();
    // After a callback has stopped CLP, its conclusions prove nothing.
    switch (rule.fired() ? kEvent : clp.status()) {
      case kOptimal:
        solution.status = SolveStatus::optimal;
        solution.x = copy(clp.primalColumnSolution(), clp.numberColumns());
        solution.row_dual = copy(clp.dualRowSolution(), clp.numberRows());
        solution.objective = solution.dual_bound = objective_of(model, solution.x);
        break;
      case kPrimalInfeasible:
        solution.status = SolveStatus::infeasible;
        break;
      case kDualInfeasible:
        solution.status = SolveStatus::unbounded;
        break;
      case kLimit:
      case kEvent:
        solution.status = SolveStatus::no_solution;
        solution.x = copy(clp.primalColumnSolution(), clp.numberColumns());
        if (max_violation(model, solution.x) <= kFeasibilityTolerance) {
          solution.status = SolveStatus::feasible;
          solution.objective = objective_of(model, solution.x);
        } else {
          solution.x.clear();
        }
        break;
      default:
        break;
    }
    return solution;
  }
};

}  // namespace

std::shared_ptr<const Solver> make_clp_solver() {
  return std::make_shared<ClpBackend>();
}

}  // namespace rondo
