#pragma once

#include <cstddef>
#include <vector>

#include "price_grid.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/decomp/orbits.hpp"

namespace rondo {

/// What rows of a flow over time stand for in each period: links or groups that are alike.
struct AlikeRows {
  std::vector<std::size_t> rows;  ///< of PricesCertificate
  std::vector<LinkId> links;      ///< of all of them, those of several groups so many times
  double GBps = 0;                ///< of all
};

/// The rows of which equal ones, by symmetry, pay the same. Refers to the topology.
class PricedRows {
 public:
  PricedRows(const Topology& topology, const Symmetry& symmetry);

  std::size_t size() const { return rows_.size(); }
  const std::vector<AlikeRows>& all() const { return rows_; }
  /// `price`: period by period, one a row.
  PricesCertificate certificate(const PriceGrid& grid, const std::vector<double>& price) const;
  /// What all links and groups earn in a microsecond of the period.
  double earned_per_us(const std::vector<double>& price, std::size_t period) const;
  /// By how much later the end may be until the links earn as much as the bytes have to pay, with periods
  /// that change in length alone, where all they earn now is 1; below 0 where they earn too much.
  double newton_step(const PriceGrid& grid, const std::vector<double>& price, double payments) const;

 private:
  const Topology& topology_;
  std::vector<AlikeRows> rows_;
};

}  // namespace rondo
