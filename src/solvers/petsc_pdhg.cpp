#include <algorithm>
#include <cmath>
#include <limits>

#include "pdhg_bound.hpp"
#include "pdhg_iteration.hpp"
#include "pdhg_problem.hpp"
#include "pdhg_rules.hpp"
#include "rondo/solvers/pdhg.hpp"
#include "stop_rule.hpp"
#include "unconstrained.hpp"

/// Runs of the iteration in sequence: each ends by the rules of pdhg_rules.hpp, and the next one begins at
/// its last point. After two runs without progress follows a run of plain steps T, whose differences converge
/// to the rays that prove a model infeasible or unbounded.
namespace rondo {
namespace {

constexpr int kLookEvery = 40;
/// Products of large models take a tenth of a second and more.
constexpr int kAskToStopEvery = 10;
constexpr std::int64_t kMostIterations = 5'000'000;
/// Share of the first distance |z - T(z)| that remains after a run without progress.
constexpr double kIdle = 0.9;

using Vector = std::vector<double>;

class Pdhg {
 public:
  Pdhg(MPI_Comm comm, const LinearModel& model, const SolveLimits& limits, const PdhgOptions& options)
      : comm_(comm),
        model_(model),
        limits_(limits),
        options_(options),
        rule_(limits),
        problem_(scaled_problem(comm, model)),
        model_id_(options.store.newest || options.store.offer ? fingerprint(comm, model, problem_.own_columns)
                                                              : 0),
        start_(start_of(options, model_id_)),
        iteration_(comm, problem_, model.num_rows(), start_ ? start_->primal_weight : 1),
        iterations_(start_ ? start_->iterations : 0),
        first_(iterations_) {
    problem_.columns = {};  // the matrix has them
  }

  /// `x`: the starting point where there is no state to resume from.
  Solution run(const Vector* x) {
    begin_at(start_ ? &start_->x : x, start_ ? &start_->row_dual : nullptr);
    start_.reset();
    PdhgRun run;
    for (;; ++iterations_, ++run.steps) {
      const std::int64_t done = iterations_ - first_;
      // Runs that are short compared to those before say little about the primal weight and may move it to
      // values from which later runs do not recover.
      run.total_steps = iterations_;
      const bool look = done % kLookEvery == 0;
      if (done % kAskToStopEvery == 0 && must_stop()) {
        offer(true);
        return unfinished(false);
      }
      if (done >= (limits_.max_iterations >= 0 ? limits_.max_iterations : kMostIterations))
        return unfinished(true);
      if (!look && run.steps > 0) {
        iteration_.resume(run.steps, plain_);
        continue;
      }
      iteration_.look();
      const double distance = iteration_.moved();
      run.previous = run.steps == 0 ? distance : run.now;
      run.now = distance;
      if (run.steps == 0) run.first = distance;
      if (look && done > 0) {
        if (const SolveStatus status = verdict(); status != SolveStatus::no_solution) return finished(status);
        offer(false);
        if (must_restart(run)) {
          const bool idle = run.now > kIdle * run.first;
          idle_runs_ = idle && !plain_ ? idle_runs_ + 1 : 0;
          plain_ = idle_runs_ >= 2;
          iteration_.restart(plain_);
          run.steps = -1;  // the loop makes it 0
          continue;
        }
      }
      iteration_.resume_from_look(run.steps, plain_);
    }
  }

 private:
  static std::optional<PdhgIterate> start_of(const PdhgOptions& options, std::uint64_t model_id) {
    std::optional<PdhgIterate> kept;
    if (options.store.newest) kept = options.store.newest(model_id);
    return kept ? kept : options.start;
  }

  /// Scaled; 0 where nothing is given.
  void begin_at(const Vector* x, const Vector* row_dual) {
    Vector own_x(problem_.cost.size(), 0.0);
    Vector own_y(problem_.row_lower.size(), 0.0);
    for (std::size_t j = 0; j < own_x.size(); ++j) {
      const double given = x == nullptr ? 0 : (*x)[static_cast<std::size_t>(problem_.own_columns.begin) + j];
      own_x[j] = std::clamp(given / problem_.column_scale[j] * problem_.bound_scale, problem_.lower[j],
                            problem_.upper[j]);
    }
    for (std::size_t i = 0; i < own_y.size() && row_dual != nullptr; ++i) {
      const double given = (*row_dual)[static_cast<std::size_t>(problem_.own_rows.begin) + i];
      own_y[i] = given / problem_.row_scale[i] * problem_.cost_scale;
    }
    iteration_.begin_at(std::move(own_x), std::move(own_y));
  }

  /// Clocks and signals differ between ranks.
  bool must_stop() const {
    const bool interrupted = options_.interrupt != nullptr && options_.interrupt->load();
    Vector fired{rule_.must_stop() || interrupted ? 1.0 : 0.0};
    reduce_max(comm_, fired);
    return fired[0] > 0;
  }

  /// The status of T(z); no_solution: the iteration continues.
  SolveStatus verdict() {
    const PdhgResiduals residuals = iteration_.residuals();
    if (options_.progress) options_.progress(progress_of(residuals));
    if (is_optimal(residuals, options_.tolerance)) return SolveStatus::optimal;
    const PdhgIteration::Rays rays = iteration_.rays();
    if (rays.infeasible) return SolveStatus::infeasible;
    if (rays.unbounded) return SolveStatus::unbounded;
    return SolveStatus::no_solution;
  }
  PdhgProgress progress_of(const PdhgResiduals& r) const {
    return {iterations_,
            std::abs(r.primal_objective - r.dual_objective) /
                (1 + std::abs(r.primal_objective) + std::abs(r.dual_objective)),
            r.primal / (1 + r.bound_norm), r.dual / (1 + r.cost_norm)};
  }

  /// Collective. The whole solution of the model as given, within the bounds of its columns and the signs of
  /// the duals of its rows.
  PdhgIterate iterate_at(Vector x, Vector y) const {
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto column = static_cast<std::size_t>(problem_.own_columns.begin) + j;
      x[j] = std::clamp(x[j] * problem_.column_scale[j] / problem_.bound_scale, model_.column_lower[column],
                        model_.column_upper[column]);
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = with_finite_term(y[i], i) * problem_.row_scale[i] / problem_.cost_scale;
    }
    return {gather_all(comm_, x), gather_all(comm_, y), iteration_.primal_weight(), iterations_};
  }
  double with_finite_term(double y, std::size_t i) const {
    if (!std::isfinite(problem_.row_lower[i])) y = std::min(y, 0.0);
    return std::isfinite(problem_.row_upper[i]) ? y : std::max(y, 0.0);
  }

  void offer(bool last) {
    if (!options_.store.offer) return;
    options_.store.offer(
        model_id_, [&] { return iterate_at(iteration_.x(), iteration_.y()); }, last);
  }

  Solution started() const {
    Solution solution;
    solution.iterations = iterations_ - first_;
    return solution;
  }

  Solution finished(SolveStatus status) {
    Solution solution = started();
    solution.status = status;
    if (status == SolveStatus::optimal) {
      offer(false);
      PdhgIterate last = iterate_at(iteration_.next_x(), iteration_.next_y());
      solution.objective = objective_of(model_, last.x);
      solution.x = std::move(last.x);
      solution.row_dual = std::move(last.row_dual);
      solution.dual_bound = bound_at(iteration_.next_y(), solution.objective);
    }
    solution.seconds = rule_.seconds();
    return solution;
  }

  /// The solution after a limit or an interruption; an interrupted run computes no bound.
  Solution unfinished(bool with_bound) {
    Solution solution = started();
    solution.status = SolveStatus::no_solution;
    PdhgIterate last = iterate_at(iteration_.x(), iteration_.y());
    const double objective = objective_of(model_, last.x);
    if (with_bound) {
      Vector y = iteration_.y();
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = with_finite_term(y[i], i);
      solution.dual_bound = bound_at(y, objective);
    }
    if (model_.is_whole() && max_violation(model_, last.x) <= kFeasibilityTolerance) {
      solution.status = SolveStatus::feasible;
      solution.objective = objective;
      solution.x = std::move(last.x);
    }
    solution.seconds = rule_.seconds();
    return solution;
  }

  double bound_at(const Vector& y, double objective) const {
    return safe_dual_bound(comm_, model_, problem_, y, iteration_.transposed_product(y), objective);
  }

  MPI_Comm comm_;
  const LinearModel& model_;
  const SolveLimits& limits_;
  const PdhgOptions& options_;
  SolverStop rule_;
  PdhgProblem problem_;
  std::uint64_t model_id_;
  std::optional<PdhgIterate> start_;
  PdhgIteration iteration_;
  std::int64_t iterations_;
  std::int64_t first_;
  int idle_runs_ = 0;
  bool plain_ = false;
};

/// Collective. Finds rows without entries and crossed bounds, which the iteration cannot detect.
bool plainly_infeasible(MPI_Comm comm, const LinearModel& model) {
  for (std::size_t j = 0; j < model.cost.size(); ++j) {
    if (model.column_lower[j] > model.column_upper[j]) return true;
  }
  Vector used(model.row_lower.size(), 0.0);
  for (const int row : model.entry_row) used[static_cast<std::size_t>(row)] = 1;
  reduce_max(comm, used);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (model.row_lower[i] > model.row_upper[i]) return true;
    if (used[i] == 0 && (model.row_lower[i] > 0 || model.row_upper[i] < 0)) return true;
  }
  return false;
}

class PdhgBackend final : public Solver {
 public:
  PdhgBackend(const Communicator& communicator, PdhgOptions options)
      : communicator_(communicator), options_(std::move(options)) {}
  std::string name() const override { return "pdhg"; }
  bool supports_integer() const override { return false; }
  double tolerance() const override { return 100 * options_.tolerance; }
  double duality_gap() const override { return options_.tolerance; }
  std::optional<ColumnShare> share() const override {
    return ColumnShare{communicator_.rank(), communicator_.size()};
  }

  Solution solve(const LinearModel& model, const SolveLimits& limits,
                 const std::vector<double>* start) const override {
    check_solvable(*this, model, start);
    start_petsc();
    const MPI_Comm comm = mpi_of(communicator_);
    Vector entries{static_cast<double>(model.entry_row.size())};
    reduce_max(comm, entries);
    if (entries[0] == 0) return solve_unconstrained(model);
    if (plainly_infeasible(comm, model)) {
      Solution solution;
      solution.status = SolveStatus::infeasible;
      return solution;
    }
    Solution solution = Pdhg(comm, model, limits, options_).run(start);
    // A ray says unbounded only where the model has a solution.
    const bool has_cost = std::any_of(model.cost.begin(), model.cost.end(), [](double c) { return c != 0; });
    if (solution.status == SolveStatus::unbounded && has_cost) {
      LinearModel feasibility = model;
      std::fill(feasibility.cost.begin(), feasibility.cost.end(), 0.0);
      const SolveStatus status = solve(feasibility, limits, nullptr).status;
      if (status != SolveStatus::optimal) solution.status = status;
    }
    return solution;
  }

 private:
  const Communicator& communicator_;
  PdhgOptions options_;
};

}  // namespace

std::shared_ptr<const Solver> make_pdhg_solver(const Communicator& communicator, PdhgOptions options) {
  return std::make_shared<PdhgBackend>(communicator, std::move(options));
}

}  // namespace rondo
