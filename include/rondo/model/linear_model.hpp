#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rondo {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Columns begin .. end - 1; all of them unless said otherwise.
struct ColumnRange {
  int begin = 0;
  int end = std::numeric_limits<int>::max();
  bool contains(int column) const { return column >= begin && column < end; }
};

/// One of `parts` shares of the columns, as even as can be.
struct ColumnShare {
  int part = 0;
  int parts = 1;
  ColumnRange of(int columns) const {
    const auto at = [&](int p) { return static_cast<int>(static_cast<std::int64_t>(columns) * p / parts); };
    return {at(part), at(part + 1)};
  }
};

/// minimise cost' x  subject to  row_lower <= A x <= row_upper,  column_lower <= x <= column_upper, some x
/// integer. Infinite bounds are +-kInfinity. Entries of one (row, column) must not repeat.
struct LinearModel {
  std::vector<double> cost = {};
  std::vector<double> column_lower = {};
  std::vector<double> column_upper = {};
  std::vector<char> integer = {};
  std::vector<double> row_lower = {};
  std::vector<double> row_upper = {};
  std::vector<int> entry_row = {};
  std::vector<int> entry_column = {};
  std::vector<double> entry_value = {};
  /// Upper bounds of the columns that some optimal solution keeps, for dual bounds; empty where there are
  /// none beside column_upper.
  std::vector<double> implied_upper = {};
  /// Entries of other columns are not kept: a model may be built in shares.
  ColumnRange kept = {};

  int num_columns() const { return static_cast<int>(cost.size()); }
  int num_rows() const { return static_cast<int>(row_lower.size()); }
  /// Whether the entries of all columns are kept.
  bool is_whole() const { return kept.begin <= 0 && kept.end >= num_columns(); }

  /// Returns the new column's number.
  int add_column(double lower, double upper, double column_cost, bool is_integer = false) {
    column_lower.push_back(lower);
    column_upper.push_back(upper);
    cost.push_back(column_cost);
    integer.push_back(is_integer ? 1 : 0);
    return num_columns() - 1;
  }
  /// Returns the new row's number.
  int add_row(double lower, double upper) {
    row_lower.push_back(lower);
    row_upper.push_back(upper);
    return num_rows() - 1;
  }
  void add_entry(int row, int column, double value) {
    if (!kept.contains(column)) return;
    entry_row.push_back(row);
    entry_column.push_back(column);
    entry_value.push_back(value);
  }
};

/// Throws Error(internal) unless the vectors of `model` agree in size, entries lie within it and numbers are
/// numbers.
void check_consistent(const LinearModel& model);

/// The greatest amount by which `x` (one value a column) leaves a row's or a column's bounds or integrality.
double max_violation(const LinearModel& model, const std::vector<double>& x);
/// What a solver's answer may have of it.
inline constexpr double kFeasibilityTolerance = 1e-6;

/// cost' x
double objective_of(const LinearModel& model, const std::vector<double>& x);

}  // namespace rondo
