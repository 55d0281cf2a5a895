#include "pdhg_problem.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

constexpr int kRuizSteps = 10;

ColumnShare own_share(MPI_Comm comm) {
  ColumnShare share;
  MPI_Comm_rank(comm, &share.part);
  MPI_Comm_size(comm, &share.parts);
  return share;
}

OwnColumns columns_of(const LinearModel& model, OwnRange range) {
  OwnColumns columns;
  columns.start.assign(static_cast<std::size_t>(range.size()) + 1, 0);
  const auto owned = [&](int column) { return column >= range.begin && column < range.end; };
  for (const int column : model.entry_column) {
    if (owned(column)) ++columns.start[static_cast<std::size_t>(column - range.begin) + 1];
  }
  for (std::size_t i = 1; i < columns.start.size(); ++i) columns.start[i] += columns.start[i - 1];
  columns.row.resize(static_cast<std::size_t>(columns.start.back()));
  columns.value.resize(columns.row.size());
  std::vector<int> next = columns.start;
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    if (!owned(model.entry_column[e])) continue;
    const auto at =
        static_cast<std::size_t>(next[static_cast<std::size_t>(model.entry_column[e] - range.begin)]++);
    columns.row[at] = model.entry_row[e];
    columns.value[at] = model.entry_value[e];
  }
  return columns;
}

/// The rows of rank r begin where the fewest entries lie in earlier rows and columns of ranks >= r, or in
/// later rows and columns of ranks < r.
OwnRange rows_near_columns(MPI_Comm comm, const OwnColumns& columns, int num_rows) {
  const ColumnShare share = own_share(comm);
  std::vector<int> begins{0};
  // Per row, entries of later ranks minus those of other ranks.
  std::vector<double> ahead(static_cast<std::size_t>(num_rows));
  for (int r = 1; r < share.parts; ++r) {
    std::fill(ahead.begin(), ahead.end(), 0.0);
    for (const int row : columns.row) ahead[static_cast<std::size_t>(row)] += share.part >= r ? 1 : -1;
    reduce_sum(comm, ahead);
    double misplaced = 0;
    double least = 0;
    int begin = 0;
    for (int i = 0; i < num_rows; ++i) {
      misplaced += ahead[static_cast<std::size_t>(i)];
      if (misplaced >= least) continue;
      least = misplaced;
      begin = i + 1;
    }
    begins.push_back(begin);
  }
  begins.push_back(num_rows);
  const auto own = static_cast<std::size_t>(share.part);
  return {begins[own], begins[own + 1]};
}

double factor(double size) {
  return size > 0 ? 1 / std::sqrt(size) : 1.0;
}

/// Returns the scale of all rows.
std::vector<double> precondition(MPI_Comm comm, PdhgProblem& problem, int num_rows) {
  OwnColumns& columns = problem.columns;
  std::vector<double> row_scale(static_cast<std::size_t>(num_rows), 1.0);
  std::vector<double> row_size(row_scale.size());
  std::vector<double> column_size(problem.column_scale.size());
  for (int step = 0; step <= kRuizSteps; ++step) {
    const bool last = step == kRuizSteps;  // Pock and Chambolle
    std::fill(row_size.begin(), row_size.end(), 0.0);
    std::fill(column_size.begin(), column_size.end(), 0.0);
    const auto entries_of = [&](std::size_t j, const auto& visit) {
      for (int e = columns.start[j]; e < columns.start[j + 1]; ++e)
        visit(static_cast<std::size_t>(e),
              static_cast<std::size_t>(columns.row[static_cast<std::size_t>(e)]));
    };
    for (std::size_t j = 0; j < column_size.size(); ++j) {
      entries_of(j, [&](std::size_t entry, std::size_t row) {
        const double value = std::abs(columns.value[entry]);
        column_size[j] = last ? column_size[j] + value : std::max(column_size[j], value);
        row_size[row] = last ? row_size[row] + value : std::max(row_size[row], value);
      });
    }
    last ? reduce_sum(comm, row_size) : reduce_max(comm, row_size);
    for (double& size : row_size) size = factor(size);
    for (std::size_t j = 0; j < column_size.size(); ++j) {
      const double of_column = factor(column_size[j]);
      problem.column_scale[j] *= of_column;
      entries_of(
          j, [&](std::size_t entry, std::size_t row) { columns.value[entry] *= of_column * row_size[row]; });
    }
    for (std::size_t i = 0; i < row_scale.size(); ++i) row_scale[i] *= row_size[i];
  }
  return row_scale;
}

double larger_finite(double lower, double upper) {
  return std::max(std::isfinite(lower) ? std::abs(lower) : 0.0, std::isfinite(upper) ? std::abs(upper) : 0.0);
}

}  // namespace

PdhgProblem scaled_problem(MPI_Comm comm, const LinearModel& model) {
  PdhgProblem p;
  const ColumnRange share = own_share(comm).of(model.num_columns());
  if (share.begin < model.kept.begin || share.end > model.kept.end)
    throw Error(ExitCode::internal, "pdhg: the model has not been built for this rank's share");
  p.own_columns = {share.begin, share.end};
  p.columns = columns_of(model, p.own_columns);
  p.own_rows = rows_near_columns(comm, p.columns, model.num_rows());
  p.column_scale.assign(static_cast<std::size_t>(p.own_columns.size()), 1.0);
  const std::vector<double> row_scale = precondition(comm, p, model.num_rows());

  std::vector<double> squares(4, 0.0);  // of scaled and given costs and bounds
  for (int j = p.own_columns.begin; j < p.own_columns.end; ++j) {
    const auto column = static_cast<std::size_t>(j);
    const double scale = p.column_scale[static_cast<std::size_t>(j - p.own_columns.begin)];
    const double implied = model.implied_upper.empty() ? kInfinity : model.implied_upper[column];
    p.cost.push_back(model.cost[column] * scale);
    p.lower.push_back(model.column_lower[column] / scale);
    p.upper.push_back(model.column_upper[column] / scale);
    p.implied_upper.push_back(std::min(model.column_upper[column], implied) / scale);
    squares[0] += p.cost.back() * p.cost.back();
    squares[1] += model.cost[column] * model.cost[column];
  }
  for (int i = p.own_rows.begin; i < p.own_rows.end; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const double scale = row_scale[row];
    p.row_scale.push_back(scale);
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
  for (std::vector<double>* values : {&p.lower, &p.upper, &p.implied_upper, &p.row_lower, &p.row_upper}) {
    for (double& value : *values) value *= p.bound_scale;
  }
  return p;
}

std::uint64_t fingerprint(MPI_Comm comm, const LinearModel& model, OwnRange own_columns) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const auto next = [](std::uint64_t sum, std::uint64_t value) {
    return mix_bits(sum * 0x9e3779b97f4a7c15ULL + value);
  };
  std::uint64_t entries = 0;  // in any order
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    const int column = model.entry_column[e];
    if (column < own_columns.begin || column >= own_columns.end) continue;
    const auto row = static_cast<std::uint64_t>(model.entry_row[e]);
    entries += next(next(row, static_cast<std::uint64_t>(column)), bits(model.entry_value[e]));
  }
  std::uint64_t sum = reduce_sum(comm, entries);
  for (const std::vector<double>* values :
       {&model.cost, &model.column_lower, &model.column_upper, &model.row_lower, &model.row_upper}) {
    sum = next(sum, values->size());
    for (const double value : *values) sum = next(sum, bits(value));
  }
  return sum;
}

}  // namespace rondo
