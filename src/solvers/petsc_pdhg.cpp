#include <algorithm>
#include <cmath>
#include <limits>

#include "pdhg_problem.hpp"
#include "pdhg_rules.hpp"
#include "rondo/solvers/pdhg.hpp"
#include "stop_rule.hpp"
#include "unconstrained.hpp"

/// With tau = eta / w and sigma = eta w, one step T of z = (x, y) is
///
///   x+ = proj_[lower, upper](x - tau (c - A'y))
///   y+ = sigma (v - proj_[-row_upper, -row_lower](v)),  v = y / sigma - A (2 x+ - x)
///
/// and a run from z_0 goes on with z_k+1 = (k + 1) / (k + 2) (2 T(z_k) - z_k) + 1 / (k + 2) z_0. A run that
/// ends without progress twice is followed by one of plain steps T, whose differences become the rays that
/// prove a model infeasible or unbounded.
namespace rondo {
namespace {

constexpr int kCheckEvery = 40;
constexpr int kPowerSteps = 60;
constexpr double kStep = 0.998;
constexpr double kNormMargin = 1.02;
constexpr double kRounding = 1e-13;
constexpr double kCutoffMargin = 1e-3;
constexpr std::int64_t kMostIterations = 5'000'000;

using Vector = std::vector<double>;

double squared(const Vector& v) {
  double sum = 0;
  for (const double value : v) sum += value * value;
  return sum;
}

/// What a value y of a dual adds to the dual objective.
double dual_term(double y, double lower, double upper) {
  return y == 0 ? 0.0 : y * (y > 0 ? lower : upper);
}

class Pdhg {
 public:
  Pdhg(MPI_Comm comm, const LinearModel& model, const SolveLimits& limits, const PdhgOptions& options)
      : comm_(comm),
        model_(model),
        limits_(limits),
        options_(options),
        rule_(limits),
        problem_(scaled_problem(comm, model)),
        matrix_(comm, problem_.rows, problem_.own_columns, model.num_columns()),
        weight_(options.start ? options.start->primal_weight : 1) {
    const auto columns = problem_.cost.size();
    const auto rows = problem_.row_lower.size();
    for (Vector* v : {&x_, &x0_, &next_x_, &aty_, &bar_, &next_aty_}) v->assign(columns, 0.0);
    for (Vector* v : {&y_, &y0_, &next_y_, &ax_, &next_ax_}) v->assign(rows, 0.0);
    iterations_ = options.start ? options.start->iterations : 0;
    eta_ = kStep / norm();
  }

  void begin_at(const Vector* x, const Vector* row_dual) {
    for (std::size_t j = 0; j < x_.size(); ++j) {
      const double given = x == nullptr ? 0 : (*x)[static_cast<std::size_t>(problem_.own_columns.begin) + j];
      x_[j] = std::clamp(given / problem_.column_scale[j] * problem_.bound_scale, problem_.lower[j],
                         problem_.upper[j]);
    }
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double given =
          row_dual == nullptr ? 0 : (*row_dual)[static_cast<std::size_t>(problem_.own_rows.begin) + i];
      y_[i] = given / problem_.row_scale[i] * problem_.cost_scale;
    }
    x0_ = x_;
    y0_ = y_;
  }

  Solution run() {
    const std::int64_t first = iterations_;
    PdhgRun state;
    for (;; ++iterations_, ++state.steps) {
      state.total_steps = iterations_ - first;
      const bool check = state.total_steps % kCheckEvery == 0;
      const bool out_of_iterations =
          state.total_steps >= (limits_.max_iterations >= 0 ? limits_.max_iterations : kMostIterations);
      if ((check && must_stop()) || out_of_iterations) return finish(SolveStatus::no_solution);
      step();
      if (check || state.steps == 0) {
        const double distance = moved();
        state.previous = state.steps == 0 ? distance : state.now;
        state.now = distance;
        if (state.steps == 0) state.first = distance;
      }
      if (check && state.total_steps > 0) {
        if (const SolveStatus status = verdict(); status != SolveStatus::no_solution) return finish(status);
        if (options_.checkpoint && iterations_ / options_.checkpoint_every > saved_) save();
        if (must_restart(state)) {
          restart(state);
          state.steps = -1;  // the loop makes it 0
          continue;
        }
      }
      advance(static_cast<double>(state.steps));
    }
  }

  /// The step that ended the run stands for the solution.
  PdhgIterate iterate() const {
    Vector x = next_x_;
    Vector y = next_y_;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto column = static_cast<std::size_t>(problem_.own_columns.begin) + j;
      x[j] = std::clamp(x[j] * problem_.column_scale[j] / problem_.bound_scale, model_.column_lower[column],
                        model_.column_upper[column]);
    }
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= problem_.row_scale[i] / problem_.cost_scale;
    return {gather_all(comm_, x), gather_all(comm_, y), weight_.value(), iterations_};
  }

 private:
  /// Of the scaled matrix, by power iteration; at most 1 (Pock and Chambolle).
  double norm() {
    for (std::size_t j = 0; j < bar_.size(); ++j) bar_[j] = 1 + 0.1 * static_cast<double>(j % 7);
    double estimate = 0;
    for (int k = 0; k < kPowerSteps; ++k) {
      Vector length{squared(bar_)};
      reduce_sum(comm_, length);
      if (length[0] <= 0) break;
      for (double& value : bar_) value /= std::sqrt(length[0]);
      matrix_.multiply(bar_, ax_);
      matrix_.multiply_transposed(ax_, bar_);
      Vector next{squared(ax_)};
      reduce_sum(comm_, next);
      estimate = std::sqrt(next[0]);
    }
    return estimate > 0 ? std::min(1.0, kNormMargin * estimate) : 1.0;
  }

  void step() {
    const double tau = eta_ / weight_.value();
    const double sigma = eta_ * weight_.value();
    matrix_.multiply_transposed(y_, aty_);
    for (std::size_t j = 0; j < x_.size(); ++j) {
      const double moved = x_[j] - tau * (problem_.cost[j] - aty_[j]);
      next_x_[j] = std::min(std::max(moved, problem_.lower[j]), problem_.upper[j]);
      bar_[j] = 2 * next_x_[j] - x_[j];
    }
    matrix_.multiply(bar_, ax_);
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double v = y_[i] / sigma - ax_[i];
      next_y_[i] = sigma * (v - std::min(std::max(v, -problem_.row_upper[i]), -problem_.row_lower[i]));
    }
  }

  void advance(double k) {
    if (plain_) {
      x_.swap(next_x_);
      y_.swap(next_y_);
      return;
    }
    const double share = (k + 1) / (k + 2);
    for (std::size_t j = 0; j < x_.size(); ++j)
      x_[j] = share * (2 * next_x_[j] - x_[j]) + (1 - share) * x0_[j];
    for (std::size_t i = 0; i < y_.size(); ++i)
      y_[i] = share * (2 * next_y_[i] - y_[i]) + (1 - share) * y0_[i];
  }

  /// |z - T(z)| in the norm of the step sizes.
  double moved() const {
    Vector sums{0, 0};
    for (std::size_t j = 0; j < x_.size(); ++j) sums[0] += (next_x_[j] - x_[j]) * (next_x_[j] - x_[j]);
    for (std::size_t i = 0; i < y_.size(); ++i) sums[1] += (next_y_[i] - y_[i]) * (next_y_[i] - y_[i]);
    reduce_sum(comm_, sums);
    return std::sqrt(sums[0] * weight_.value() + sums[1] / weight_.value());
  }

  void restart(const PdhgRun& state) {
    const bool idle = state.now > 0.9 * state.first;
    idle_runs_ = idle && !plain_ ? idle_runs_ + 1 : 0;
    plain_ = idle_runs_ >= 2;
    Vector sums{0, 0};
    for (std::size_t j = 0; j < x_.size(); ++j) sums[0] += (next_x_[j] - x0_[j]) * (next_x_[j] - x0_[j]);
    for (std::size_t i = 0; i < y_.size(); ++i) sums[1] += (next_y_[i] - y0_[i]) * (next_y_[i] - y0_[i]);
    reduce_sum(comm_, sums);
    if (!plain_) weight_.update(std::sqrt(sums[0]), std::sqrt(sums[1]));
    x_ = x0_ = next_x_;
    y_ = y0_ = next_y_;
  }

  /// Clocks and signals differ between ranks.
  bool must_stop() const {
    Vector fired{rule_.must_stop() ? 1.0 : 0.0};
    reduce_max(comm_, fired);
    return fired[0] > 0;
  }

  /// Of the last step; no_solution: go on.
  SolveStatus verdict() {
    matrix_.multiply(next_x_, next_ax_);
    matrix_.multiply_transposed(next_y_, next_aty_);
    if (is_optimal(residuals(), options_.tolerance)) return SolveStatus::optimal;
    // Rays from the last step; A and A' of them from products at hand.
    Vector sums{0, 0};
    Vector most{0, 0};
    for (std::size_t i = 0; i < y_.size(); ++i) {
      sums[0] += dual_term(next_y_[i] - y_[i], problem_.row_lower[i], problem_.row_upper[i]);
      const double move = ax_[i] - next_ax_[i];  // A (2 x+ - x) - A x+
      if (std::isfinite(problem_.row_lower[i])) most[1] = std::max(most[1], -move);
      if (std::isfinite(problem_.row_upper[i])) most[1] = std::max(most[1], move);
    }
    for (std::size_t j = 0; j < x_.size(); ++j) {
      const double reduced = aty_[j] - next_aty_[j];
      const double term = dual_term(reduced, problem_.lower[j], problem_.upper[j]);
      std::isfinite(term) ? sums[0] += term : most[0] = std::max(most[0], std::abs(reduced));
      const double move = next_x_[j] - x_[j];
      sums[1] -= problem_.cost[j] * move;
      if (std::isfinite(problem_.lower[j])) most[1] = std::max(most[1], -move);
      if (std::isfinite(problem_.upper[j])) most[1] = std::max(most[1], move);
    }
    reduce_sum(comm_, sums);
    reduce_max(comm_, most);
    if (is_certificate(sums[0], most[0])) return SolveStatus::infeasible;
    if (is_certificate(sums[1], most[1])) return SolveStatus::unbounded;
    return SolveStatus::no_solution;
  }

  PdhgResiduals residuals() const {
    const double unit = problem_.cost_scale * problem_.bound_scale;
    Vector sums(4, 0.0);
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double activity = next_ax_[i];
      const double outside =
          std::max({problem_.row_lower[i] - activity, activity - problem_.row_upper[i], 0.0}) /
          (problem_.row_scale[i] * problem_.bound_scale);
      sums[0] += outside * outside;
      sums[3] += dual_term(next_y_[i], problem_.row_lower[i], problem_.row_upper[i]) / unit;
    }
    for (std::size_t j = 0; j < x_.size(); ++j) {
      const double reduced = problem_.cost[j] - next_aty_[j];
      const double term = dual_term(reduced, problem_.lower[j], problem_.upper[j]);
      const double given = reduced / (problem_.column_scale[j] * problem_.cost_scale);
      std::isfinite(term) ? sums[3] += term / unit : sums[1] += given * given;
      sums[2] += problem_.cost[j] * next_x_[j] / unit;
    }
    reduce_sum(comm_, sums);
    return {std::sqrt(sums[0]),  std::sqrt(sums[1]), sums[2], sums[3],
            problem_.bound_norm, problem_.cost_norm};
  }

  void save() {
    saved_ = iterations_ / options_.checkpoint_every;
    options_.checkpoint(iterate());
  }

  Solution finish(SolveStatus status) {
    Solution solution;
    solution.status = status;
    solution.iterations = iterations_ - (options_.start ? options_.start->iterations : 0);
    if (status == SolveStatus::infeasible || status == SolveStatus::unbounded) {
      solution.seconds = rule_.seconds();
      return solution;
    }
    if (solution.iterations == 0) {
      next_x_ = x_;
      next_y_ = y_;
    }
    PdhgIterate last = iterate();
    const double objective = objective_of(model_, last.x);
    if (status == SolveStatus::no_solution && max_violation(model_, last.x) <= kFeasibilityTolerance)
      solution.status = SolveStatus::feasible;
    solution.dual_bound = safe_dual_bound(objective);
    if (solution.status != SolveStatus::no_solution) {
      solution.objective = objective;
      solution.x = std::move(last.x);
      if (status == SolveStatus::optimal) solution.row_dual = std::move(last.row_dual);
    }
    solution.seconds = rule_.seconds();
    return solution;
  }

  /// Either the optimum is above a cutoff near the objective found, or all columns are within the bounds that
  /// the cutoff implies, where weak duality gives a finite bound: the lesser of both holds.
  double safe_dual_bound(double objective) {
    const double cutoff = objective + kCutoffMargin * (1 + std::abs(objective));
    const ColumnBounds bounds = implied_bounds(comm_, model_, problem_.own_rows, cutoff);
    matrix_.multiply_transposed(next_y_, next_aty_);
    Vector sums{0, 0};  // value, magnitude
    const auto count = [&](double term) {
      sums[0] += term;
      sums[1] += std::abs(term);
    };
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double y = next_y_[i] * problem_.row_scale[i] / problem_.cost_scale;
      const auto row = static_cast<std::size_t>(problem_.own_rows.begin) + i;
      count(dual_term(y, model_.row_lower[row], model_.row_upper[row]));
    }
    for (std::size_t j = 0; j < x_.size(); ++j) {
      const auto column = static_cast<std::size_t>(problem_.own_columns.begin) + j;
      const double activity = next_aty_[j] / (problem_.column_scale[j] * problem_.cost_scale);
      const double reduced = model_.cost[column] - activity;
      const double term = dual_term(reduced, bounds.lower[column], bounds.upper[column]);
      count(term);
      const double reach = std::max(std::abs(bounds.lower[column]), std::abs(bounds.upper[column]));
      if (std::isfinite(reach)) sums[1] += (std::abs(model_.cost[column]) + std::abs(activity)) * reach;
    }
    reduce_sum(comm_, sums);
    const double bound = sums[0] - kRounding * sums[1];
    return std::isfinite(bound) ? std::min(cutoff, bound) : -kInfinity;
  }

  MPI_Comm comm_;
  const LinearModel& model_;
  const SolveLimits& limits_;
  const PdhgOptions& options_;
  StopRule rule_;
  PdhgProblem problem_;
  PetscMatrix matrix_;
  PrimalWeight weight_;
  double eta_ = 1;
  std::int64_t iterations_ = 0;
  std::int64_t saved_ = 0;
  int idle_runs_ = 0;
  bool plain_ = false;
  Vector x_, x0_, next_x_, bar_, aty_, next_aty_;  ///< by own columns
  Vector y_, y0_, next_y_, ax_, next_ax_;          ///< by own rows
};

/// Rows without entries and crossed bounds, which no iteration finds out about.
bool plainly_infeasible(const LinearModel& model) {
  std::vector<char> used(model.row_lower.size(), 0);
  for (const int row : model.entry_row) used[static_cast<std::size_t>(row)] = 1;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (model.row_lower[i] > model.row_upper[i]) return true;
    if (used[i] == 0 && (model.row_lower[i] > 0 || model.row_upper[i] < 0)) return true;
  }
  for (std::size_t j = 0; j < model.cost.size(); ++j) {
    if (model.column_lower[j] > model.column_upper[j]) return true;
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

  Solution solve(const LinearModel& model, const SolveLimits& limits,
                 const std::vector<double>* start) const override {
    check_solvable(*this, model, start);
    if (model.entry_row.empty()) return solve_unconstrained(model);
    if (plainly_infeasible(model)) {
      Solution solution;
      solution.status = SolveStatus::infeasible;
      return solution;
    }
    start_petsc();
    Pdhg pdhg(mpi_of(communicator_), model, limits, options_);
    const Vector* x = start;
    const Vector* y = nullptr;
    if (options_.start) {
      x = &options_.start->x;
      y = &options_.start->row_dual;
    }
    pdhg.begin_at(x, y);
    Solution solution = pdhg.run();
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
