#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/model/linear_model.hpp"

namespace rondo {

enum class SolveStatus {
  optimal,      ///< proven, within `SolveLimits::relative_gap` for integer models
  feasible,     ///< a limit or an interruption ended the search; a solution is there
  infeasible,   ///< proven
  unbounded,    ///< proven
  no_solution,  ///< a limit or an interruption ended the search before a solution was found
  failed        ///< the backend gave up (numerics)
};

std::string to_string(SolveStatus status);

/// Work is limited by nodes and iterations, which give the same answer everywhere; seconds are the user's
/// choice.
struct SolveLimits {
  std::int64_t max_iterations = -1;  ///< simplex iterations; -1 = none
  std::int64_t max_nodes = -1;       ///< branch-and-bound nodes; -1 = none
  double relative_gap = 0;           ///< integer models stop at it
  double time_limit_s = -1;          ///< wall; -1 = none
  double cutoff = kInfinity;         ///< only solutions better than this objective are of interest
  const std::atomic<bool>* interrupt = nullptr;  ///< read in the backend's callbacks; true stops the search
};

struct Solution {
  SolveStatus status = SolveStatus::failed;
  std::vector<double> x = {};         ///< one a column, where status is optimal or feasible
  std::vector<double> row_dual = {};  ///< one a row, for continuous models that are optimal; sign of a
                                      ///< minimisation: d objective / d right-hand side
  double objective = kInfinity;
  double dual_bound = -kInfinity;  ///< no solution is below it
  std::int64_t iterations = 0;
  std::int64_t nodes = 0;
  double seconds = 0;
};

/// One backend. Implementations hold no state between calls and may be shared.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual std::string name() const = 0;
  virtual bool supports_integer() const = 0;
  /// How far an optimal solution's objective, values and duals may be off, relative to 1 + their size.
  virtual double tolerance() const { return 1e-9; }
  /// How far its objective may be from that of its duals, relative to 1 + the sizes of both.
  virtual double duality_gap() const { return tolerance(); }
  /// Of backends that deal the columns among ranks: the share whose entries solve() needs on this rank; more
  /// do no harm. The fewer rows have entries in several shares, the less travels between ranks.
  virtual std::optional<ColumnShare> share() const { return std::nullopt; }
  /// `start`: one value a column, a feasible point (integer backends) or a guess (others). Throws
  /// Error(internal) for sizes in `model` that do not agree, Error(unavailable) for integer columns where
  /// they are not supported.
  virtual Solution solve(const LinearModel& model, const SolveLimits& limits,
                         const std::vector<double>* start = nullptr) const = 0;
};

/// What every backend does first: throws the errors that `Solver::solve` documents.
void check_solvable(const Solver& solver, const LinearModel& model, const std::vector<double>* start);

}  // namespace rondo
