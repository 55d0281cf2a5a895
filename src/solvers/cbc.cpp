#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <coin/CbcEventHandler.hpp>
#include <coin/CbcModel.hpp>
#include <coin/CbcSolver.hpp>
#include <coin/CoinError.hpp>
#include <coin/OsiClpSolverInterface.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coin_matrix.hpp"
#include "rondo/core/error.hpp"
#include "rondo/solvers/solvers.hpp"
#include "stop_rule.hpp"
#include "unconstrained.hpp"

namespace rondo {
namespace {

constexpr double kCutoffTolerance = 1e-9;

/// Answers of CbcModel::status() and CbcModel::secondaryStatus().
enum CbcStatus { kFinished = 0, kStopped = 1, kStoppedByHandler = 5 };
constexpr int kRelaxationUnbounded = 7;

/// CBC calls this at every node, solution and heuristic.
class CbcStopHandler final : public CbcEventHandler {
 public:
  explicit CbcStopHandler(const SolverStop& rule) : rule_(rule) {}
  CbcAction event(CbcEvent) override { return rule_.must_stop() ? stop : noAction; }
  CbcAction event(CbcEvent which, void*) override { return event(which); }
  CbcEventHandler* clone() const override { return new CbcStopHandler(*this); }

 private:
  const SolverStop& rule_;
};

/// CLP 1.17 aborts on an assertion (coin-or/Clp issue 288) where it crunches what preprocessing has left
/// fewer than three rows of.
class SafeClp final : public OsiClpSolverInterface {
 public:
  OsiSolverInterface* clone(bool copy_data) const override {
    return copy_data ? new SafeClp(*this) : new SafeClp;  // CBC owns it
  }
  void resolve() override {
    constexpr unsigned int kNoCrunch = 2048;
    constexpr int kFewestRows = 3;
    if (getNumRows() < kFewestRows) setSpecialOptions(specialOptions() | kNoCrunch);
    OsiClpSolverInterface::resolve();
  }
};

/// CBC takes a start by column names only.
std::vector<std::pair<std::string, double>> named_start(const OsiSolverInterface& osi,
                                                        const std::vector<double>& start) {
  std::vector<std::pair<std::string, double>> named;
  named.reserve(start.size());
  for (std::size_t j = 0; j < start.size(); ++j)
    named.emplace_back(osi.getColName(static_cast<int>(j)), start[j]);
  return named;
}

int no_callback(CbcModel*, int) {
  return 0;
}

/// Runs what the `cbc` program runs: preprocessing, its cut generators and heuristics, branch and cut, in one
/// thread.
void run(CbcModel& cbc, const SolveLimits& limits) {
  // CLP 1.17 aborts on an assertion (lowerValue <= upperValue) in some models of CBC's diving heuristic.
  std::vector<std::string> arguments = {
      "rondo", "-log", "0", "-DivingCoefficient", "off", "-ratioGap", fmt::format("{}", limits.relative_gap)};
  if (limits.max_nodes >= 0) {
    arguments.insert(arguments.end(), {"-maxNodes", std::to_string(as_int(limits.max_nodes))});
  }
  if (std::isfinite(limits.cutoff))
    arguments.insert(arguments.end(), {"-cutoff", fmt::format("{}", limits.cutoff)});
  arguments.insert(arguments.end(), {"-solve", "-quit"});
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());

  CbcSolverUsefulData data;
  data.noPrinting_ = true;
  data.useSignalHandler_ = false;
  CbcMain0(cbc, data);
  CbcMain1(static_cast<int>(argv.size()), argv.data(), cbc, no_callback, data);
}

class CbcBackend final : public Solver {
 public:
  std::string name() const override { return "cbc"; }
  bool supports_integer() const override { return true; }

  Solution solve(const LinearModel& model, const SolveLimits& limits,
                 const std::vector<double>* start) const override {
    check_solvable(*this, model, start);
    if (model.entry_row.empty()) return solve_unconstrained(model);
    if (std::none_of(model.integer.begin(), model.integer.end(), [](char flag) { return flag != 0; })) {
      return make_clp_solver()->solve(model, limits, start);
    }
    const SolverStop rule(limits, limits.max_iterations);
    SafeClp osi;
    osi.messageHandler()->setLogLevel(0);
    osi.getModelPtr()->setLogLevel(0);
    osi.loadProblem(coin_matrix(model), model.column_lower.data(), model.column_upper.data(),
                    model.cost.data(), model.row_lower.data(), model.row_upper.data());
    for (int j = 0; j < model.num_columns(); ++j) {
      if (model.integer[static_cast<std::size_t>(j)] != 0) osi.setInteger(j);
    }
    // CBC calls no handler of its own while it preprocesses and solves the first relaxation.
    ClpStopHandler lp_handler(rule);
    osi.getModelPtr()->passInEventHandler(&lp_handler);
    CbcModel cbc(osi);
    cbc.setLogLevel(0);
    CbcStopHandler handler(rule);
    cbc.passInEventHandler(&handler);
    if (start != nullptr && objective_of(model, *start) >= limits.cutoff) start = nullptr;
    if (start != nullptr) cbc.setMIPStart(named_start(osi, *start));
    try {
      run(cbc, limits);
    } catch (const CoinError& error) {
      if (start == nullptr) throw Error(ExitCode::internal, "CBC failed: " + error.message());
      return solve_below(model, limits, *start);
    }
    return without_what_is_no_better(read(cbc, model, rule, start), limits.cutoff);
  }

 private:
  /// CBC 2.10 loses the names of columns while it completes some starts (CoinError): then the start counts as
  /// a cutoff.
  Solution solve_below(const LinearModel& model, SolveLimits limits, const std::vector<double>& start) const {
    limits.cutoff = std::min(limits.cutoff, objective_of(model, start));
    Solution solution = solve(model, limits, nullptr);
    if (solution.x.empty() &&
        (solution.status == SolveStatus::infeasible || solution.status == SolveStatus::no_solution)) {
      solution.status =
          solution.status == SolveStatus::infeasible ? SolveStatus::optimal : SolveStatus::feasible;
      solution.x = start;
      solution.objective = objective_of(model, start);
    }
    return solution;
  }

  static Solution read(const CbcModel& cbc, const LinearModel& model, const SolverStop& rule,
                       const std::vector<double>* start) {
    Solution solution;
    solution.iterations = rule.iterations();
    solution.nodes = cbc.getNodeCount();
    solution.seconds = rule.seconds();
    // After a callback has stopped a relaxation, the conclusions of CBC prove nothing.
    const bool finished = cbc.status() == kFinished && !rule.fired();
    if (std::optional<std::vector<double>> x = best_solution(cbc, model, start)) {
      solution.status = finished && cbc.isProvenOptimal() ? SolveStatus::optimal : SolveStatus::feasible;
      solution.objective = objective_of(model, *x);
      solution.x = std::move(*x);
    } else if (finished && cbc.secondaryStatus() == kRelaxationUnbounded) {
      solution.status = SolveStatus::unbounded;
    } else if (finished && cbc.isProvenInfeasible()) {
      solution.status = SolveStatus::infeasible;
    } else if (rule.fired() || cbc.status() == kStopped || cbc.status() == kStoppedByHandler) {
      solution.status = SolveStatus::no_solution;
    }
    if (!rule.fired() && solution.status != SolveStatus::unbounded) {
      solution.dual_bound = std::min(cbc.getBestPossibleObjValue(), solution.objective);
    }
    return solution;
  }

  /// CBC takes solutions that equal the cutoff.
  static Solution without_what_is_no_better(Solution solution, double cutoff) {
    if (solution.x.empty() || solution.objective < cutoff) return solution;
    solution.status =
        solution.status == SolveStatus::optimal && solution.dual_bound >= cutoff - kCutoffTolerance
            ? SolveStatus::infeasible
            : SolveStatus::no_solution;
    solution.x.clear();
    solution.objective = kInfinity;
    return solution;
  }

  /// CBC's incumbent with exact integers, or the start where CBC was stopped before it looked at it.
  static std::optional<std::vector<double>> best_solution(const CbcModel& cbc, const LinearModel& model,
                                                          const std::vector<double>* start) {
    std::optional<std::vector<double>> best;
    if (cbc.bestSolution() != nullptr) {
      best.emplace(cbc.bestSolution(), cbc.bestSolution() + model.num_columns());
      for (std::size_t j = 0; j < best->size(); ++j) {
        if (model.integer[j] != 0) (*best)[j] = std::round((*best)[j]);
      }
    } else if (start != nullptr) {
      best = *start;
    }
    if (best && max_violation(model, *best) > kFeasibilityTolerance) best.reset();
    return best;
  }
};

}  // namespace

std::shared_ptr<const Solver> make_cbc_solver() {
  return std::make_shared<CbcBackend>();
}

}  // namespace rondo
