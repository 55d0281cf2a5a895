#include "pdhg_iteration.hpp"

#include <algorithm>
#include <cmath>

#include "pdhg_bound.hpp"

namespace rondo {
namespace {

/// Less than 1 over the norm of the scaled matrix, which is at most 1 (Pock and Chambolle 2011). An estimate
/// of the norm that is a few percent low makes steps too long, and some models then never end.
constexpr double kStep = 0.998;

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

PdhgIteration::PdhgIteration(MPI_Comm comm, const PdhgProblem& problem, int num_rows, double primal_weight)
    : comm_(comm),
      problem_(problem),
      matrix_(comm, problem.columns, problem.own_rows, num_rows),
      weight_(primal_weight) {
  for (Vector* v : {&x_, &x0_, &next_x_, &aty_, &bar_, &next_aty_}) v->assign(problem.cost.size(), 0.0);
  for (Vector* v : {&y_, &y0_, &next_y_, &ax_, &next_ax_}) v->assign(problem.row_lower.size(), 0.0);
}

void PdhgIteration::begin_at(Vector x, Vector y) {
  x_ = std::move(x);
  y_ = std::move(y);
  x0_ = x_;
  y0_ = y_;
}

/// One pass over each vector between the products, since memory bandwidth limits an iteration.
void PdhgIteration::resume(std::int64_t k, bool plain) {
  const double tau = kStep / weight_.value();
  const double sigma = kStep * weight_.value();
  const double share = plain ? 1 : static_cast<double>(k + 1) / static_cast<double>(k + 2);
  const double own = plain ? 0.5 : 0;  // T(z) is halfway to its reflection
  matrix_.multiply_transposed(y_, aty_);
  for (std::size_t j = 0; j < x_.size(); ++j) {
    const double x = x_[j];
    const double moved = x - tau * (problem_.cost[j] - aty_[j]);
    const double next = std::min(std::max(moved, problem_.lower[j]), problem_.upper[j]);
    const double bar = 2 * next - x;
    bar_[j] = bar;
    x_[j] = share * (bar + own * (x - bar)) + (1 - share) * x0_[j];
  }
  matrix_.multiply(bar_, ax_);
  for (std::size_t i = 0; i < y_.size(); ++i) {
    const double y = y_[i];
    const double v = y / sigma - ax_[i];
    const double next = sigma * (v - std::min(std::max(v, -problem_.row_upper[i]), -problem_.row_lower[i]));
    const double bar = 2 * next - y;
    y_[i] = share * (bar + own * (y - bar)) + (1 - share) * y0_[i];
  }
}

void PdhgIteration::look() {
  const double tau = kStep / weight_.value();
  const double sigma = kStep * weight_.value();
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

void PdhgIteration::resume_from_look(std::int64_t k, bool plain) {
  if (plain) {
    x_ = next_x_;
    y_ = next_y_;
    return;
  }
  const double share = static_cast<double>(k + 1) / static_cast<double>(k + 2);
  for (std::size_t j = 0; j < x_.size(); ++j) x_[j] = share * (2 * next_x_[j] - x_[j]) + (1 - share) * x0_[j];
  for (std::size_t i = 0; i < y_.size(); ++i) y_[i] = share * (2 * next_y_[i] - y_[i]) + (1 - share) * y0_[i];
}

double PdhgIteration::moved() const {
  Vector sums{squared_distance(next_x_, x_), squared_distance(next_y_, y_)};
  reduce_sum(comm_, sums);
  return std::sqrt(sums[0] * weight_.value() + sums[1] / weight_.value());
}

void PdhgIteration::restart(bool keep_weight) {
  Vector sums{squared_distance(next_x_, x0_), squared_distance(next_y_, y0_)};
  reduce_sum(comm_, sums);
  if (!keep_weight) weight_.update(std::sqrt(sums[0]), std::sqrt(sums[1]));
  x_ = x0_ = next_x_;
  y_ = y0_ = next_y_;
}

PdhgResiduals PdhgIteration::residuals() {
  matrix_.multiply(next_x_, next_ax_);
  matrix_.multiply_transposed(next_y_, next_aty_);
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
    const double term = dual_term(reduced, problem_.lower[j], problem_.implied_upper[j]);
    const double given = reduced / (problem_.column_scale[j] * problem_.cost_scale);
    std::isfinite(term) ? sums[3] += term / unit : sums[1] += given * given;
    sums[2] += problem_.cost[j] * next_x_[j] / unit;
  }
  reduce_sum(comm_, sums);
  return {std::sqrt(sums[0]), std::sqrt(sums[1]), sums[2], sums[3], problem_.bound_norm, problem_.cost_norm};
}

PdhgIteration::Rays PdhgIteration::rays() const {
  Vector gain{0, 0};
  Vector most{0, 0};
  for (std::size_t i = 0; i < y_.size(); ++i) {
    gain[0] += dual_term(next_y_[i] - y_[i], problem_.row_lower[i], problem_.row_upper[i]);
    const double move = ax_[i] - next_ax_[i];  // A (2 x+ - x) - A x+
    if (std::isfinite(problem_.row_lower[i])) most[1] = std::max(most[1], -move);
    if (std::isfinite(problem_.row_upper[i])) most[1] = std::max(most[1], move);
  }
  for (std::size_t j = 0; j < x_.size(); ++j) {
    const double reduced = aty_[j] - next_aty_[j];
    const double term = dual_term(reduced, problem_.lower[j], problem_.upper[j]);
    std::isfinite(term) ? gain[0] += term : most[0] = std::max(most[0], std::abs(reduced));
    const double move = next_x_[j] - x_[j];
    gain[1] -= problem_.cost[j] * move;
    if (std::isfinite(problem_.lower[j])) most[1] = std::max(most[1], -move);
    if (std::isfinite(problem_.upper[j])) most[1] = std::max(most[1], move);
  }
  reduce_sum(comm_, gain);
  reduce_max(comm_, most);
  return {is_certificate(gain[0], most[0]), is_certificate(gain[1], most[1])};
}

PdhgIteration::Vector PdhgIteration::transposed_product(const Vector& y) const {
  Vector product(x_.size());
  matrix_.multiply_transposed(y, product);
  return product;
}

}  // namespace rondo
