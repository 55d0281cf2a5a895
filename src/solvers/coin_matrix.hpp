#pragma once

#include <coin/CoinPackedMatrix.hpp>

#include "rondo/model/linear_model.hpp"

namespace rondo {

inline CoinPackedMatrix coin_matrix(const LinearModel& model) {
  CoinPackedMatrix matrix(true, model.entry_row.data(), model.entry_column.data(), model.entry_value.data(),
                          static_cast<CoinBigIndex>(model.entry_row.size()));
  matrix.setDimensions(model.num_rows(), model.num_columns());  // trailing empty rows and columns
  return matrix;
}

}  // namespace rondo
