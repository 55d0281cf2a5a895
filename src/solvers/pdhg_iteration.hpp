#pragma once

#include <cstdint>
#include <vector>

#include "pdhg_problem.hpp"
#include "pdhg_rules.hpp"

namespace rondo {

/// The iteration of PDHG on a scaled problem. With tau = eta / w and sigma = eta w, eta a
/// little less than 1 over the greatest norm that the scaling allows, one step T of z = (x, y) is
///
///   x+ = proj_[lower, upper](x - tau (c - A'y))
///   y+ = sigma (v - proj_[-row_upper, -row_lower](v)),  v = y / sigma - A (2 x+ - x)
///
/// and a run from z_0 continues with z_k+1 = (k + 1) / (k + 2) (2 T(z_k) - z_k) + 1 / (k + 2) z_0, or plainly
/// with T(z_k). All members are collective except where stated.
class PdhgIteration {
 public:
  using Vector = std::vector<double>;

  PdhgIteration(MPI_Comm comm, const PdhgProblem& problem, int num_rows, double primal_weight);

  /// Not collective. By own columns and rows; begins a run.
  void begin_at(Vector x, Vector y);

  /// z becomes z_k+1.
  void resume(std::int64_t k, bool plain);
  /// The same; T(z) can be queried before.
  void look();
  void resume_from_look(std::int64_t k, bool plain);

  /// |z - T(z)| in the norm of the step sizes, after look().
  double moved() const;
  PdhgResiduals residuals();
  /// Whether T(z) - z is a ray that proves the model infeasible, or unbounded; after residuals().
  struct Rays {
    bool infeasible = false;
    bool unbounded = false;
  };
  Rays rays() const;
  /// Begins a run at T(z). The primal weight adapts to the distances that the last run covered, unless
  /// `keep_weight`.
  void restart(bool keep_weight);

  double primal_weight() const { return weight_.value(); }
  /// Own pieces; not collective.
  const Vector& x() const { return x_; }
  const Vector& y() const { return y_; }
  const Vector& next_x() const { return next_x_; }
  const Vector& next_y() const { return next_y_; }
  /// A^' y, by own columns.
  Vector transposed_product(const Vector& y) const;

 private:
  MPI_Comm comm_;
  const PdhgProblem& problem_;
  PetscMatrix matrix_;
  PrimalWeight weight_;
  Vector x_, x0_, next_x_, bar_, aty_, next_aty_;  ///< by own columns
  Vector y_, y0_, next_y_, ax_, next_ax_;          ///< by own rows
};

}  // namespace rondo
