#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// The rows of a packing of trees, which its prices are for: one per link, then one per shared group.
class LinkRows {
 public:
  /// `bytes`: of what a row is asked how long it takes.
  explicit LinkRows(const Topology& topology, double bytes = 1);

  std::size_t count() const { return us_.size(); }
  /// Of the link and of its groups.
  std::span<const int> of(LinkId link) const { return rows_of_[link.index()]; }
  /// That the bytes take over a row.
  double us(int row) const { return us_[static_cast<std::size_t>(row)]; }
  /// Whether the slowest link on a path can keep this one: it leads from or to a switch that does not store.
  bool may_be_kept(LinkId link) const { return may_be_kept_[link.index()] != 0; }
  /// That they keep a row busy in transfers that take `slowest_us` for as many: links that may be kept to the
  /// end of those.
  double us(int row, double slowest_us) const {
    return may_be_kept_[static_cast<std::size_t>(row)] != 0 ? std::max(us(row), slowest_us) : us(row);
  }
  /// Over the slowest of these links that may be kept; 0 where there is none.
  double slowest_us(std::span<const LinkId> links) const;
  /// Over the fastest row.
  double least_us() const;
  /// Per link what the bytes over it cost at these prices per us, one per row, if transfers keep it busy for
  /// no less than `slowest_us`.
  std::vector<double> link_costs(std::span<const double> price, double slowest_us = 0) const;

 private:
  std::vector<double> us_;
  std::vector<std::vector<int>> rows_of_;
  std::vector<char> may_be_kept_;  ///< per row; groups are not
};

/// Prices of which those from `first` on sum to 1, but for `share_of_other`, which is of other prices.
std::vector<double> mixed_prices(std::vector<double> price, std::span<const double> other,
                                 double share_of_other, std::size_t first = 0);

}  // namespace rondo
