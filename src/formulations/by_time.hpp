#pragma once

#include <numeric>
#include <utility>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {

/// New numbers of the columns and rows of a model, by their old ones.
struct NumbersByTime {
  std::vector<int> column = {};
  std::vector<int> row = {};
  int column_at(int old) const { return column[index(old)]; }
  int row_at(int old) const { return row[index(old)]; }
};

/// For each of `times`, which are not negative, its place in ascending order; equal ones keep their order.
inline std::vector<int> numbers_by_time(const std::vector<int>& times) {
  std::vector<int> next;  // per time
  for (const int time : times) {
    if (index(time) + 1 >= next.size()) next.resize(index(time) + 2);
    ++next[index(time) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<int> numbers;
  numbers.reserve(times.size());
  for (const int time : times) numbers.push_back(next[index(time)]++);
  return numbers;
}

/// Gives the entries of `model` their new numbers.
inline void number_entries(LinearModel& model, const NumbersByTime& numbers) {
  for (int& column : model.entry_column) column = numbers.column_at(column);
  for (int& row : model.entry_row) row = numbers.row_at(row);
}

/// Brings what `model` keeps of columns and rows to their new numbers; its entries have them already.
inline void number_by_time(LinearModel& model, const NumbersByTime& numbers) {
  const auto bring = [](auto& values, const std::vector<int>& to) {
    auto moved = values;
    for (std::size_t i = 0; i < values.size(); ++i) moved[index(to[i])] = values[i];
    values = std::move(moved);
  };
  for (auto* values : {&model.cost, &model.column_lower, &model.column_upper, &model.implied_upper})
    bring(*values, numbers.column);
  bring(model.integer, numbers.column);
  for (auto* values : {&model.row_lower, &model.row_upper}) bring(*values, numbers.row);
}

}  // namespace rondo
