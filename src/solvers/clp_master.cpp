#include <algorithm>
#include <coin/ClpSimplex.hpp>

#include "rondo/model/column_master.hpp"
#include "rondo/solvers/solvers.hpp"
#include "stop_rule.hpp"

namespace rondo {
namespace {

/// What ClpModel::status() is where the limit of iterations came first.
constexpr int kEndedByLimit = 3;

/// Rows first, then blocks; column 0 is theta.
class ClpColumnMaster final : public ColumnMaster {
 public:
  ClpColumnMaster(int num_rows, int num_blocks) : num_rows_(num_rows), num_blocks_(num_blocks) {
    clp_.setLogLevel(0);
    clp_.resize(num_rows + num_blocks, 0);
    for (int r = 0; r < num_rows; ++r) clp_.setRowBounds(r, -COIN_DBL_MAX, 0);
    for (int b = 0; b < num_blocks; ++b) clp_.setRowBounds(num_rows + b, 1, 1);
    std::vector<int> rows;
    for (int r = 0; r < num_rows; ++r) rows.push_back(r);
    const std::vector<double> minus_one(rows.size(), -1.0);
    const CoinBigIndex starts[] = {0, num_rows};
    const double lower = 0;
    const double upper = COIN_DBL_MAX;
    const double cost = 1;
    clp_.addColumns(1, &lower, &upper, &cost, starts, rows.data(), minus_one.data());
  }

  void add(const std::vector<MasterColumn>& columns) override {
    std::vector<CoinBigIndex> starts{0};
    std::vector<int> rows;
    std::vector<double> values;
    for (const MasterColumn& column : columns) {
      rows.insert(rows.end(), column.rows.begin(), column.rows.end());
      values.insert(values.end(), column.loads.begin(), column.loads.end());
      rows.push_back(num_rows_ + column.block);
      values.push_back(1);
      starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    }
    const std::vector<double> zero(columns.size(), 0.0);
    clp_.addColumns(static_cast<int>(columns.size()), zero.data(), nullptr, zero.data(), starts.data(),
                    rows.data(), values.data());
  }

  void limit_row(int row, double limit) override {
    clp_.setRowBounds(row, -COIN_DBL_MAX, limit);
    clp_.modifyCoefficient(row, 0, 0.0);
  }

  void keep(const std::vector<char>& flags) override {
    std::vector<int> gone;
    for (std::size_t p = 0; p < flags.size(); ++p) {
      if (flags[p] == 0) gone.push_back(static_cast<int>(p) + 1);
    }
    if (!gone.empty()) clp_.deleteColumns(static_cast<int>(gone.size()), gone.data());
  }

  MasterSolution solve(const SolveLimits& limits) override {
    const SolverStop rule(limits);
    ClpStopHandler handler(rule);
    clp_.passInEventHandler(&handler);
    if (limits.max_iterations >= 0) clp_.setMaximumIterations(as_int(limits.max_iterations));
    clp_.primal(0);
    MasterSolution solution;
    solution.iterations = clp_.numberIterations();
    const bool ends_early = rule.fired() || clp_.status() == kEndedByLimit;
    if (ends_early || clp_.status() != 0) {
      solution.status = ends_early ? SolveStatus::no_solution : SolveStatus::failed;
      return solution;
    }
    solution.status = SolveStatus::optimal;
    const double* x = clp_.primalColumnSolution();
    const double* dual = clp_.dualRowSolution();
    solution.theta = x[0];
    solution.weight.assign(x + 1, x + clp_.numberColumns());
    for (int r = 0; r < num_rows_; ++r) solution.row_price.push_back(std::max(0.0, -dual[r]));
    solution.block_price.assign(dual + num_rows_, dual + num_rows_ + num_blocks_);
    return solution;
  }

  MasterBasis basis() const override {
    MasterBasis basis;
    for (int r = 0; r < clp_.numberRows(); ++r) basis.push_back(clp_.getRowStatus(r));
    for (int j = 0; j < clp_.numberColumns(); ++j) basis.push_back(clp_.getColumnStatus(j));
    return basis;
  }

  void start_from(const MasterBasis& basis) override {
    clp_.createStatus();
    auto status = basis.begin();
    for (int r = 0; r < clp_.numberRows(); ++r)
      clp_.setRowStatus(r, static_cast<ClpSimplex::Status>(*status++));
    for (int j = 0; j < clp_.numberColumns(); ++j)
      clp_.setColumnStatus(j, static_cast<ClpSimplex::Status>(*status++));
  }

 private:
  ClpSimplex clp_;
  int num_rows_;
  int num_blocks_;
};

}  // namespace

std::unique_ptr<ColumnMaster> make_clp_column_master(int num_rows, int num_blocks) {
  return std::make_unique<ClpColumnMaster>(num_rows, num_blocks);
}

}  // namespace rondo
