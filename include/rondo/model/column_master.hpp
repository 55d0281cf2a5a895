#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rondo/model/solver.hpp"

namespace rondo {

/// A column of the master: its block, and what it adds to the rows.
struct MasterColumn {
  int block = 0;
  std::vector<int> rows = {};
  std::vector<double> loads = {};
};

struct MasterSolution {
  SolveStatus status = SolveStatus::failed;
  double theta = 0;
  std::vector<double> weight = {};       ///< per column, in the order they were added
  std::vector<double> row_price = {};    ///< >= 0; of rows without a limit, sum to 1 where theta > 0
  std::vector<double> block_price = {};  ///< what a column of the block may cost at these prices
  std::int64_t iterations = 0;
};

/// Where a master's simplex stands; what the values mean is the backend's.
using MasterBasis = std::vector<unsigned char>;

/// The restricted master of a Dantzig-Wolfe decomposition,
///
///   minimise    theta
///   subject to  sum of load_{r,p} weight_p - theta <= 0 for every row r,
///               sum of weight_p over the columns p of b = 1 for every block b,  weight >= 0,
///
/// solved again from its last basis as it grows.
class ColumnMaster {
 public:
  virtual ~ColumnMaster() = default;
  virtual void add(const std::vector<MasterColumn>& columns) = 0;
  /// The row's loads sum to at most `limit` instead of to theta. Before anything is added.
  virtual void limit_row(int row, double limit) = 0;
  /// Keeps the columns whose flag is not 0; none with weight > 0 may go.
  virtual void keep(const std::vector<char>& flags) = 0;
  /// Every block needs a column.
  virtual MasterSolution solve(const SolveLimits& limits) = 0;
  virtual MasterBasis basis() const = 0;
  /// `basis`: of a master with the same columns. What follows depends on nothing that was before.
  virtual void start_from(const MasterBasis& basis) = 0;
};

using MakeColumnMaster = std::function<std::unique_ptr<ColumnMaster>(int num_rows, int num_blocks)>;

}  // namespace rondo
