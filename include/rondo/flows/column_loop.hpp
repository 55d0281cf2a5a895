#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/decomp/columns.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/parallel/checkpoints.hpp"
#include "rondo/parallel/communicator.hpp"

/// Column generation for maximum concurrent flow over the ranks.
namespace rondo {

struct ColumnOptions {
  double gap = 1e-6;  ///< the loop ends once theta <= bound x (1 + gap)
  /// If > 0, it also ends once theta <= enough x (1 + gap), or the bound proves that no solution has such a
  /// theta.
  double enough = 0;
  int warm_up = 40;  ///< pricings by multiplicative weights before the first master
  /// Of the first-order method, which begins once masters have done as much work as its likely steps would
  /// be; what they leave of the gap is for masters again. 0: masters alone,
  /// as flows over time need it: their ways are too long for such steps.
  int most_steps = 0;
  double likely_steps = 1000;
  int max_iterations = 400;  ///< masters
  SolveLimits limits = {};   ///< seconds, simplex iterations and interrupt, of the whole loop
  /// Row prices that may prove a better bound than those of the warm-up, after which they are tried: one a
  /// row, such as 1 on the links that leave a cut and 0 elsewhere.
  std::vector<std::vector<double>> start_prices = {};
  /// Where the loop leaves states under `state_name`, and finds those of the same problem and options.
  Checkpoints* checkpoints = nullptr;
  std::string state_name = "columns";
  /// Masters from one state to the next, where a new master replaces the old one and what this remembered
  /// beyond the state.
  int masters_per_state = 10;
};

/// How far the loop is; bound <= optimum <= theta.
struct ColumnProgress {
  int iteration = 0;
  double theta = 0;  ///< of the best flow so far
  double bound = 0;
  std::size_t columns = 0;
};

struct ColumnSolution {
  SolveStatus status = SolveStatus::failed;  ///< optimal: within the gap; feasible: a limit came first
  double theta = kInfinity;
  double bound = 0;
  std::vector<double> row_price = {};           ///< proves the bound; sum of capacity x price is 1
  std::vector<std::vector<ArcLoad>> flow = {};  ///< per block, ascending arcs
  std::vector<ColumnProgress> history = {};     ///< one an iteration
  std::int64_t simplex_iterations = 0;
  std::int64_t first_order_steps = 0;
  double pricing_s = 0;  ///< wall, of this rank
  double steps_s = 0;
  double master_s = 0;
};

/// Collective. Blocks are dealt over the ranks; each prices its own, the root solves the master. Prices are
/// smoothed between the best so far and the master's (Wentges, Int. Trans. Operational Research 4, 1997), and
/// begin at those of multiplicative weights (Garg and Koenemann, SIAM J. Computing 37, 2007), whose trees are
/// the first columns. Where masters are slow, a first-order method goes on from their flow, whose flows stay
/// with the ranks of their blocks. The same result on any number of ranks, and from any of its states, as
/// long as no second or signal ends it; then the newest state is kept.
ColumnSolution solve_by_columns(const ConcurrentFlow& flow, const ColumnOptions& options,
                                const MakeColumnMaster& make_master, const Communicator& communicator,
                                const std::function<void(const ColumnProgress&)>& progress = {});

}  // namespace rondo
