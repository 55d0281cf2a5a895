#pragma once

#include <cstdint>

/// Decisions of PDHG, pure. minimise c'x, row_lower <= A x <= row_upper, column_lower <= x <= column_upper.
namespace rondo {

/// How far a point is from optimal, on the model as it was given; norms are Euclidean.
struct PdhgResiduals {
  double primal = 0;  ///< of A x outside the rows' bounds
  double dual = 0;    ///< of reduced costs c - A'y that no finite bound of a column takes up
  double primal_objective = 0;
  double dual_objective = 0;  ///< with those reduced costs left out
  double bound_norm = 0;      ///< of the rows' finite bounds, the greater of each row
  double cost_norm = 0;
};

/// |p - d| <= tolerance (1 + |p| + |d|), primal <= tolerance (1 + bound_norm), dual <= tolerance (1 +
/// cost_norm). False where anything is not a number.
bool is_optimal(const PdhgResiduals& residuals, double tolerance);

/// Distances |z - T(z)| of a run since its last restart.
struct PdhgRun {
  double first = 0;     ///< at the restart
  double previous = 0;  ///< at the last check
  double now = 0;
  std::int64_t steps = 0;        ///< since the restart
  std::int64_t total_steps = 0;  ///< since the beginning, those before an interruption too
};

/// Restart when the distance has fallen to a fifth, or to half and grows again, or when the run has taken
/// more than 0.36 of all steps.
bool must_restart(const PdhgRun& run);

/// Primal weight: how far the dual moves against the primal, by a controller on its logarithm; from 1e-6 to
/// 1e6.
class PrimalWeight {
 public:
  explicit PrimalWeight(double weight) : weight_(within_reason(weight)) {}
  double value() const { return weight_; }
  /// Distances between two restarts; nothing happens where one of them is 0 or beyond reason.
  void update(double primal_distance, double dual_distance);

 private:
  static double within_reason(double weight);

  double weight_;
  double error_sum_ = 0;
};

/// A ray that proves a model infeasible or unbounded: `gain` is its objective, `violation` the greatest
/// amount by which it leaves the cone that it has to lie in.
bool is_certificate(double gain, double violation);

}  // namespace rondo
