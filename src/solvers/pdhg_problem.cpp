#include "pdhg_problem.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

constexpr int kRuizSteps = 10;
constexpr int kMostSweeps = 200;
/// What implied bounds give away to rounding errors.
constexpr double kSlack = 1e-9;

/// Rows with about equally many entries.
OwnRange rows_by_entries(MPI_Comm comm, const LinearModel& model) {
  std::vector<std::int64_t> until(model.row_lower.size() + 1, 0);
  for (const int row : model.entry_row) ++until[static_cast<std::size_t>(row) + 1];
  for (std::size_t i = 1; i < until.size(); ++i) until[i] += until[i - 1] + 1;  // a row costs as well
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const auto at = [&](int r) {
    const std::int64_t goal = until.back() * r / size;
    return static_cast<int>(std::lower_bound(until.begin(), until.end(), goal) - until.begin());
  };
  return {at(rank), rank + 1 == size ? model.num_rows() : at(rank + 1)};
}

/// Divides rows and columns by the roots of `row_size` and `column_size`, which hold all columns.
void divide(PdhgProblem& problem, std::vector<double>& column_scale, const std::vector<double>& row_size,
            const std::vector<double>& column_size) {
  const auto factor = [](double size) { return size > 0 ? 1 / std::sqrt(size) : 1.0; };
  OwnRows& rows = problem.rows;
  for (int i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    problem.row_scale[row] *= factor(row_size[row]);
    for (int e = rows.start[row]; e < rows.start[row + 1]; ++e) {
      const auto entry = static_cast<std::size_t>(e);
      rows.value[entry] *=
          factor(row_size[row]) * factor(column_size[static_cast<std::size_t>(rows.column[entry])]);
    }
  }
  for (std::size_t j = 0; j < column_scale.size(); ++j) column_scale[j] *= factor(column_size[j]);
}

void precondition(MPI_Comm comm, PdhgProblem& problem, std::vector<double>& column_scale) {
  const OwnRows& rows = problem.rows;
  for (int step = 0; step <= kRuizSteps; ++step) {
    const bool last = step == kRuizSteps;  // Pock and Chambolle
    std::vector<double> row_size(problem.row_scale.size(), 0.0);
    std::vector<double> column_size(column_scale.size(), 0.0);
    for (std::size_t i = 0; i < row_size.size(); ++i) {
      for (int e = rows.start[i]; e < rows.start[i + 1]; ++e) {
        const double value = std::abs(rows.value[static_cast<std::size_t>(e)]);
        double& column = column_size[static_cast<std::size_t>(rows.column[static_cast<std::size_t>(e)])];
        row_size[i] = last ? row_size[i] + value : std::max(row_size[i], value);
        column = last ? column + value : std::max(column, value);
      }
    }
    last ? reduce_sum(comm, column_size) : reduce_max(comm, column_size);
    divide(problem, column_scale, row_size, column_size);
  }
}

double larger_finite(double lower, double upper) {
  return std::max(std::isfinite(lower) ? std::abs(lower) : 0.0, std::isfinite(upper) ? std::abs(upper) : 0.0);
}

}  // namespace

OwnRows rows_of(const LinearModel& model, OwnRange range) {
  OwnRows rows;
  rows.start.assign(static_cast<std::size_t>(range.size()) + 1, 0);
  const auto owned = [&](int row) { return row >= range.begin && row < range.end; };
  for (const int row : model.entry_row) {
    if (owned(row)) ++rows.start[static_cast<std::size_t>(row - range.begin) + 1];
  }
  for (std::size_t i = 1; i < rows.start.size(); ++i) rows.start[i] += rows.start[i - 1];
  rows.column.resize(static_cast<std::size_t>(rows.start.back()));
  rows.value.resize(rows.column.size());
  std::vector<int> next = rows.start;
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    if (!owned(model.entry_row[e])) continue;
    const auto at =
        static_cast<std::size_t>(next[static_cast<std::size_t>(model.entry_row[e] - range.begin)]++);
    rows.column[at] = model.entry_column[e];
    rows.value[at] = model.entry_value[e];
  }
  return rows;
}

PdhgProblem scaled_problem(MPI_Comm comm, const LinearModel& model) {
  PdhgProblem p;
  p.own_columns = own_range(comm, model.num_columns());
  p.own_rows = rows_by_entries(comm, model);
  p.rows = rows_of(model, p.own_rows);
  p.row_scale.assign(static_cast<std::size_t>(p.own_rows.size()), 1.0);
  std::vector<double> column_scale(static_cast<std::size_t>(model.num_columns()), 1.0);
  precondition(comm, p, column_scale);

  std::vector<double> squares(4, 0.0);  // of scaled and given costs and bounds
  for (int j = p.own_columns.begin; j < p.own_columns.end; ++j) {
    const auto column = static_cast<std::size_t>(j);
    const double scale = column_scale[column];
    p.column_scale.push_back(scale);
    p.cost.push_back(model.cost[column] * scale);
    p.lower.push_back(model.column_lower[column] / scale);
    p.upper.push_back(model.column_upper[column] / scale);
    squares[0] += p.cost.back() * p.cost.back();
    squares[1] += model.cost[column] * model.cost[column];
  }
  for (int i = p.own_rows.begin; i < p.own_rows.end; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const double scale = p.row_scale[static_cast<std::size_t>(i - p.own_rows.begin)];
    p.row_lower.push_back(model.row_lower[row] * scale);
    p.row_upper.push_back(model.row_upper[row] * scale);
    const double scaled = larger_finite(p.row_lower.back(), p.row_upper.back());
    const double given = larger_finite(model.row_lower[row], model.row_upper[row]);
    squares[2] += scaled * scaled;
    squares[3] += given * given;
  }
  reduce_sum(comm, squares);
  p.cost_norm = std::sqrt(squares[1]);
  p.bound_norm = std::sqrt(squares[3]);
  p.cost_scale = 1 / (1 + std::sqrt(squares[0]));
  p.bound_scale = 1 / (1 + std::sqrt(squares[2]));
  for (double& cost : p.cost) cost *= p.cost_scale;
  for (std::vector<double>* values : {&p.lower, &p.upper, &p.row_lower, &p.row_upper}) {
    for (double& value : *values) value *= p.bound_scale;
  }
  return p;
}

bool tighten(const OwnRows& rows, const std::vector<double>& row_lower, const std::vector<double>& row_upper,
             ColumnBounds& bounds) {
  bool changed = false;
  // `sign` x the row <= `side`
  const auto one_side = [&](std::size_t i, double sign, double side) {
    if (!std::isfinite(side)) return;
    double least = 0;
    int infinite = 0;
    const auto contribution = [&](std::size_t e) {
      const double a = sign * rows.value[e];
      const auto j = static_cast<std::size_t>(rows.column[e]);
      return a == 0 ? 0.0 : a * (a > 0 ? bounds.lower[j] : bounds.upper[j]);
    };
    const auto first = static_cast<std::size_t>(rows.start[i]);
    const auto last = static_cast<std::size_t>(rows.start[i + 1]);
    for (std::size_t e = first; e < last; ++e) {
      const double value = contribution(e);
      std::isfinite(value) ? least += value : infinite += 1;
    }
    if (infinite > 1) return;
    for (std::size_t e = first; e < last; ++e) {
      const double a = sign * rows.value[e];
      if (a == 0) continue;
      const auto j = static_cast<std::size_t>(rows.column[e]);
      double& bound = a > 0 ? bounds.upper[j] : bounds.lower[j];
      const double own = contribution(e);
      if (std::isfinite(bound) || (infinite == 1 && std::isfinite(own))) continue;
      const double others = std::isfinite(own) ? least - own : least;
      const double limit = (side - others) / a;
      bound = limit + (a > 0 ? 1 : -1) * kSlack * (1 + std::abs(limit));
      changed = true;
    }
  };
  for (int i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    one_side(row, 1, row_upper[row]);
    one_side(row, -1, -row_lower[row]);
  }
  return changed;
}

ColumnBounds implied_bounds(MPI_Comm comm, const LinearModel& model, OwnRange own_rows, double cutoff) {
  const OwnRows rows = rows_of(model, own_rows);
  const auto own = [&](const std::vector<double>& all) {
    return std::vector<double>(all.begin() + own_rows.begin, all.begin() + own_rows.end);
  };
  const std::vector<double> row_lower = own(model.row_lower);
  const std::vector<double> row_upper = own(model.row_upper);
  OwnRows cutoff_row{{0, model.num_columns()}, {}, model.cost};
  for (int j = 0; j < model.num_columns(); ++j) cutoff_row.column.push_back(j);

  ColumnBounds bounds{model.column_lower, model.column_upper};
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool changed = tighten(cutoff_row, {-kInfinity}, {cutoff}, bounds);
    changed = tighten(rows, row_lower, row_upper, bounds) || changed;
    reduce_max(comm, bounds.lower);
    for (double& value : bounds.upper) value = -value;
    reduce_max(comm, bounds.upper);
    for (double& value : bounds.upper) value = -value;
    std::vector<double> any{changed ? 1.0 : 0.0};
    reduce_max(comm, any);
    if (any[0] == 0) break;
  }
  return bounds;
}

}  // namespace rondo
