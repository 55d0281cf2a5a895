#pragma once

#include <cstdint>
#include <vector>

#include "rondo/decomp/columns.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Maximum concurrent flow as a saddle point: the least over all flows x >= 0, the greatest over all row
/// prices y >= 0 whose sum of capacity x price is 1, of
///
///   sum over rows r of y_r load_r(x)  +  sum over blocks b and nodes v of p_bv (wanted_bv - arriving_bv(x))
///
/// with a potential p_bv of every node for every block. Primal-dual steps (Chambolle and Pock, J.
/// Mathematical Imaging and Vision 40, 2011, their steps preconditioned: ICCV 2011), reflected and drawn back
/// to where they began (Halpern), with restarts from the point reached (Lu and Yang, "Restarted Halpern PDHG
/// for linear programming", 2024).
///
/// Every rank has the flows and potentials of its blocks (block b is of rank b mod ranks); what is exchanged
/// in a step is one number a row. All sums over blocks are exact, so that the ranks change nothing.
class FirstOrderFlow {
 public:
  /// Begins at `start`, the flows of this rank's blocks in their order, and at `row_price`, whose sum of
  /// capacity x price is 1. `theta`: what to expect of the greatest load over its capacity, within a factor
  /// of two or so.
  FirstOrderFlow(const ConcurrentFlow& flow, const Communicator& communicator,
                 const std::vector<std::vector<ArcLoad>>& start, const std::vector<double>& row_price,
                 double theta);

  /// What remains to be held for each arc and block, in bytes, on all ranks together.
  static double bytes(const ConcurrentFlow& flow);

  /// Collective. Steps to the next restart, at most `most`; returns their number.
  int run(int most);

  /// Of the restart: their sum of capacity x price is 1.
  const std::vector<double>& row_price() const { return price_.now; }
  /// Collective. About the greatest load over its capacity at the restart, were what is missing at nodes sent
  /// along shortest paths.
  double expected_theta() const;
  /// The flows of this rank's blocks at the restart, mended: every sink gets exactly what it wants.
  std::vector<std::vector<ArcLoad>> flows() const;

 private:
  using Vector = std::vector<double>;

  /// An iterate, and what it was at the last restart.
  struct Iterate {
    Vector now;
    Vector began;
  };

  /// A row of flows, or of potentials: one entry a block of this rank.
  std::size_t at(std::size_t index) const { return index * own_.size(); }
  void set_steps(double weight);
  void move_flows(bool measures);
  void move_potentials(bool measures);
  /// Collective.
  void move_prices();
  void add_rounded(std::size_t arc, const double* amount);
  Vector rows_of_sums() const;
  /// Collective: a number a block becomes their sum.
  double sum_over_blocks(const Vector& of_own_blocks) const;
  /// Collective.
  void restart();

  const ConcurrentFlow& flow_;
  const Communicator& communicator_;
  std::vector<std::size_t> own_;                    ///< blocks of this rank
  std::vector<std::vector<std::size_t>> out_, in_;  ///< arcs of a node
  std::vector<std::vector<std::size_t>> rows_of_;   ///< of an arc
  std::vector<std::vector<std::size_t>> sourced_;   ///< per node: whose source it is, places in own_
  Vector wanted_;                                   ///< [node][own block]
  Vector to_unit_;                                  ///< per row: one unit of exact sums is 1 / this
  Vector unit_sums_;                                ///< per row, of this rank's blocks
  double most_units_ = 0;                           ///< of one amount

  Iterate amount_;            ///< [arc][own block]
  Vector reflected_;          ///< [arc][own block]
  Iterate potential_;         ///< [node][own block]; 0 at the source
  Vector potential_stepped_;  ///< before it is reflected, where steps are measured
  Iterate price_;             ///< per row, on every rank
  Vector price_stepped_;
  Vector length_;           ///< per arc: the prices of its rows
  Vector moved_;            ///< per own block: how far the last measured step went, squared
  double flow_weight_ = 1;  ///< of steps of the flows against those of prices
  Vector flow_step_, potential_step_, price_step_;
  double shift_ = 0;            ///< of the projection of prices, where the last one ended
  double keep_ = 0, draw_ = 1;  ///< shares of the reflected step and of where it began in the next iterate
  std::int64_t steps_ = 0;
};

}  // namespace rondo
