#include "pdhg_bound.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

constexpr int kMostSweeps = 200;
/// Relative margin of implied bounds against rounding errors.
constexpr double kSlack = 1e-9;
constexpr double kRounding = 1e-13;
constexpr double kCutoffMargin = 1e-3;

/// Rows, compressed.
struct Rows {
  std::vector<std::size_t> start;
  std::vector<std::size_t> column;
  std::vector<double> value;
};

Rows rows_of(const LinearModel& model) {
  Rows rows;
  rows.start.assign(model.row_lower.size() + 1, 0);
  for (const int row : model.entry_row) ++rows.start[static_cast<std::size_t>(row) + 1];
  for (std::size_t i = 1; i < rows.start.size(); ++i) rows.start[i] += rows.start[i - 1];
  rows.column.resize(model.entry_row.size());
  rows.value.resize(model.entry_row.size());
  std::vector<std::size_t> next = rows.start;
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    const std::size_t at = next[static_cast<std::size_t>(model.entry_row[e])]++;
    rows.column[at] = static_cast<std::size_t>(model.entry_column[e]);
    rows.value[at] = model.entry_value[e];
  }
  return rows;
}

/// Tightens infinite bounds by `sign` x row i <= `side`; returns whether any became finite.
bool tighten(const Rows& rows, std::size_t i, double sign, double side, ColumnBounds& bounds) {
  if (!std::isfinite(side)) return false;
  double least = 0;
  int infinite = 0;
  const auto contribution = [&](std::size_t e) {
    const double a = sign * rows.value[e];
    return a == 0 ? 0.0 : a * (a > 0 ? bounds.lower[rows.column[e]] : bounds.upper[rows.column[e]]);
  };
  for (std::size_t e = rows.start[i]; e < rows.start[i + 1]; ++e) {
    const double value = contribution(e);
    std::isfinite(value) ? least += value : infinite += 1;
  }
  if (infinite > 1) return false;
  bool changed = false;
  for (std::size_t e = rows.start[i]; e < rows.start[i + 1]; ++e) {
    const double a = sign * rows.value[e];
    if (a == 0) continue;
    double& bound = a > 0 ? bounds.upper[rows.column[e]] : bounds.lower[rows.column[e]];
    const double own = contribution(e);
    if (std::isfinite(bound) || (infinite == 1 && std::isfinite(own))) continue;
    const double others = std::isfinite(own) ? least - own : least;
    const double limit = (side - others) / a;
    bound = limit + (a > 0 ? 1 : -1) * kSlack * (1 + std::abs(limit));
    changed = true;
  }
  return changed;
}

/// Sum of the terms of the dual objective, and of their magnitudes.
struct DualSum {
  double value = 0;
  double magnitude = 0;
};

DualSum dual_sum(MPI_Comm comm, const LinearModel& model, const PdhgProblem& problem,
                 const std::vector<double>& y, const std::vector<double>& aty, const ColumnBounds& bounds) {
  std::vector<double> sums{0, 0};
  const auto count = [&](double term) {
    sums[0] += term;
    sums[1] += std::abs(term);
  };
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto row = static_cast<std::size_t>(problem.own_rows.begin) + i;
    count(dual_term(y[i] * problem.row_scale[i] / problem.cost_scale, model.row_lower[row],
                    model.row_upper[row]));
  }
  for (std::size_t j = 0; j < aty.size(); ++j) {
    const auto column = static_cast<std::size_t>(problem.own_columns.begin) + j;
    const double activity = aty[j] / (problem.column_scale[j] * problem.cost_scale);
    const double cost = model.cost[column];
    count(dual_term(cost - activity, bounds.lower[column], bounds.upper[column]));
    const double reach = std::max(std::abs(bounds.lower[column]), std::abs(bounds.upper[column]));
    if (std::isfinite(reach)) sums[1] += (std::abs(cost) + std::abs(activity)) * reach;
  }
  reduce_sum(comm, sums);
  return {sums[0], sums[1]};
}

}  // namespace

ColumnBounds implied_bounds(const LinearModel& model, double cutoff) {
  const Rows rows = rows_of(model);
  Rows cost_row{{0, model.cost.size()}, {}, model.cost};
  for (std::size_t j = 0; j < model.cost.size(); ++j) cost_row.column.push_back(j);
  ColumnBounds bounds{model.column_lower, model.column_upper};
  bool changed = true;
  for (int sweep = 0; sweep < kMostSweeps && changed; ++sweep) {
    changed = tighten(cost_row, 0, 1, cutoff, bounds);
    for (std::size_t i = 0; i < model.row_lower.size(); ++i) {
      changed = tighten(rows, i, 1, model.row_upper[i], bounds) || changed;
      changed = tighten(rows, i, -1, -model.row_lower[i], bounds) || changed;
    }
  }
  return bounds;
}

double safe_dual_bound(MPI_Comm comm, const LinearModel& model, const PdhgProblem& problem,
                       const std::vector<double>& y, const std::vector<double>& aty, double objective) {
  ColumnBounds bounds{model.column_lower, model.column_upper};
  for (std::size_t j = 0; j < model.implied_upper.size(); ++j)
    bounds.upper[j] = std::min(bounds.upper[j], model.implied_upper[j]);
  const auto bound_of = [&] {
    const DualSum sum = dual_sum(comm, model, problem, y, aty, bounds);
    return sum.value - kRounding * sum.magnitude;
  };
  const double bound = bound_of();
  // A model built in shares carries its implied bounds.
  if (std::isfinite(bound) || !model.is_whole() || !model.implied_upper.empty())
    return std::isfinite(bound) ? bound : -kInfinity;
  // Either the optimum is above a cutoff near the objective of the point, or all columns are within the
  // bounds that the cutoff implies, where weak duality gives a finite bound: the smaller of both is valid.
  const double cutoff = objective + kCutoffMargin * (1 + std::abs(objective));
  bounds = implied_bounds(model, cutoff);
  const double implied = bound_of();
  return std::isfinite(implied) ? std::min(cutoff, implied) : -kInfinity;
}

}  // namespace rondo
