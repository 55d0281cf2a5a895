#include <fmt/format.h>

#include <array>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/profile/profile.hpp"

namespace rondo::profile {
namespace {

using Row = std::array<double, 3>;
using Matrix = std::array<Row, 3>;

/// Gauss-Jordan with pivots. Throws for what has no inverse.
Matrix inverse(Matrix m) {
  Matrix result = {Row{1, 0, 0}, Row{0, 1, 0}, Row{0, 0, 1}};
  for (std::size_t column = 0; column < 3; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < 3; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) pivot = row;
    }
    if (std::abs(m[pivot][column]) < 1e-12) {
      throw Error(
          ExitCode::bad_data,
          "the samples do not tell latency, message cost and bandwidth apart; they need two sizes and two "
          "numbers of messages");
    }
    std::swap(m[column], m[pivot]);
    std::swap(result[column], result[pivot]);
    const double scale = m[column][column];
    for (std::size_t k = 0; k < 3; ++k) {
      m[column][k] /= scale;
      result[column][k] /= scale;
    }
    for (std::size_t row = 0; row < 3; ++row) {
      const double factor = row == column ? 0 : m[row][column];
      for (std::size_t k = 0; k < 3; ++k) {
        m[row][k] -= factor * m[column][k];
        result[row][k] -= factor * result[column][k];
      }
    }
  }
  return result;
}

}  // namespace

LineFit fit_line(const std::vector<TimedMessages>& samples) {
  if (samples.size() < 4) {
    throw Error(ExitCode::bad_data,
                fmt::format("{} samples tell no error of three figures; take at least 4", samples.size()));
  }
  // Columns of one magnitude keep the normal equations well conditioned.
  Row scale = {0, 0, 0};
  std::vector<Row> rows;
  for (const TimedMessages& s : samples) {
    if (!(s.us > 0)) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{} messages of {} bytes took {} us: the clock is too coarse for them",
                              s.messages, s.bytes, s.us));
    }
    rows.push_back({1 / s.us, s.messages / s.us, s.messages * s.bytes / s.us});
    for (std::size_t k = 0; k < 3; ++k) scale[k] = std::max(scale[k], std::abs(rows.back()[k]));
  }
  for (double& s : scale) s = s > 0 ? s : 1;
  Matrix normal = {};
  Row right = {};
  for (Row& row : rows) {
    for (std::size_t k = 0; k < 3; ++k) row[k] /= scale[k];
    for (std::size_t i = 0; i < 3; ++i) {
      right[i] += row[i];
      for (std::size_t k = 0; k < 3; ++k) normal[i][k] += row[i] * row[k];
    }
  }
  const Matrix inverted = inverse(normal);
  Row solution = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) solution[i] += inverted[i][k] * right[k];
  }
  double squares = 0;
  for (const Row& row : rows) {
    const double miss = 1 - row[0] * solution[0] - row[1] * solution[1] - row[2] * solution[2];
    squares += miss * miss;
  }
  const double variance = squares / static_cast<double>(rows.size() - 3);
  const auto figure = [&](std::size_t k) {
    return Figure{.value = solution[k] / scale[k],
                  .error = 2 * std::sqrt(variance * inverted[k][k]) / scale[k]};
  };
  return {.constant_us = figure(0), .message_us = figure(1), .byte_us = figure(2)};
}

}  // namespace rondo::profile
