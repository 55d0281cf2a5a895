#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "backends.hpp"

/// Models that take long to solve.
namespace rondo {

/// Whole numbers 1..n, the same everywhere.
class Numbers {
 public:
  double next(unsigned n) { return 1.0 + static_cast<double>(generator_() % n); }

 private:
  std::mt19937_64 generator_{7};
};

/// A dense random packing problem, too long for the limits it is given; feasible at 0.
inline LinearModel packing(int columns, int rows, bool integer) {
  Numbers numbers;
  LinearModel model;
  for (int j = 0; j < columns; ++j) model.add_column(0, 1, -numbers.next(100), integer);
  for (int i = 0; i < rows; ++i) {
    std::vector<double> weights(static_cast<std::size_t>(columns));
    double sum = 0;
    for (double& weight : weights) sum += weight = numbers.next(100);
    add_row(model, -kInfinity, std::floor(sum / 4), weights);
  }
  return model;
}

/// Market split: equalities that random subsets hardly ever meet; branch and bound needs ages to find out.
inline LinearModel market_split() {
  Numbers numbers;
  LinearModel model;
  for (int j = 0; j < 40; ++j) model.add_column(0, 1, 0, true);
  for (int i = 0; i < 5; ++i) {
    std::vector<double> weights(40);
    double sum = 0;
    for (double& weight : weights) sum += weight = numbers.next(100);
    add_row(model, std::floor(sum / 2), std::floor(sum / 2), weights);
  }
  return model;
}

}  // namespace rondo
