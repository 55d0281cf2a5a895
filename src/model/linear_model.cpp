#include "rondo/model/linear_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

void expect_size(std::string_view what, std::size_t size, std::size_t expected) {
  if (size != expected) {
    throw Error(ExitCode::internal,
                fmt::format("linear model: {} has {} elements, {} were expected", what, size, expected));
  }
}

void expect_bounds(std::string_view what, const std::vector<double>& lower,
                   const std::vector<double>& upper) {
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (std::isnan(lower[i]) || std::isnan(upper[i]) || lower[i] == kInfinity || upper[i] == -kInfinity) {
      throw Error(ExitCode::internal,
                  fmt::format("linear model: {} {} has the bounds [{}, {}]", what, i, lower[i], upper[i]));
    }
  }
}

double outside(double value, double lower, double upper) {
  return std::max({lower - value, value - upper, 0.0});
}

}  // namespace

void check_consistent(const LinearModel& model) {
  const auto columns = static_cast<std::size_t>(model.num_columns());
  const auto rows = static_cast<std::size_t>(model.num_rows());
  expect_size("column_lower", model.column_lower.size(), columns);
  expect_size("column_upper", model.column_upper.size(), columns);
  expect_size("integer", model.integer.size(), columns);
  expect_size("implied_upper", model.implied_upper.size(), model.implied_upper.empty() ? 0 : columns);
  expect_size("row_upper", model.row_upper.size(), rows);
  expect_size("entry_column", model.entry_column.size(), model.entry_row.size());
  expect_size("entry_value", model.entry_value.size(), model.entry_row.size());
  expect_bounds("column", model.column_lower, model.column_upper);
  expect_bounds("row", model.row_lower, model.row_upper);
  for (std::size_t j = 0; j < columns; ++j) {
    if (!std::isfinite(model.cost[j])) {
      throw Error(ExitCode::internal, fmt::format("linear model: column {} costs {}", j, model.cost[j]));
    }
  }
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    const int row = model.entry_row[e];
    const int column = model.entry_column[e];
    if (row < 0 || row >= model.num_rows() || column < 0 || column >= model.num_columns() ||
        !std::isfinite(model.entry_value[e])) {
      throw Error(ExitCode::internal,
                  fmt::format("linear model: entry {} is ({}, {}, {}) in a model of {} rows and {} columns",
                              e, row, column, model.entry_value[e], rows, columns));
    }
  }
}

double max_violation(const LinearModel& model, const std::vector<double>& x) {
  std::vector<double> activity(model.row_lower.size(), 0.0);
  for (std::size_t e = 0; e < model.entry_row.size(); ++e) {
    activity[static_cast<std::size_t>(model.entry_row[e])] +=
        model.entry_value[e] * x[static_cast<std::size_t>(model.entry_column[e])];
  }
  double worst = 0;
  for (std::size_t i = 0; i < activity.size(); ++i) {
    worst = std::max(worst, outside(activity[i], model.row_lower[i], model.row_upper[i]));
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    worst = std::max(worst, outside(x[j], model.column_lower[j], model.column_upper[j]));
    if (model.integer[j] != 0) worst = std::max(worst, std::abs(x[j] - std::round(x[j])));
  }
  return worst;
}

double objective_of(const LinearModel& model, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += model.cost[j] * x[j];
  return sum;
}

}  // namespace rondo
