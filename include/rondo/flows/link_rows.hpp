#pragma once

#include <span>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// The rows of a packing of trees, which its prices are for: one per link, then one per shared group.
class LinkRows {
 public:
  explicit LinkRows(const Topology& topology);

  std::size_t count() const { return us_per_byte_.size(); }
  /// Of the link and of its groups.
  std::span<const int> of(LinkId link) const { return rows_of_[link.index()]; }
  double us_per_byte(int row) const { return us_per_byte_[static_cast<std::size_t>(row)]; }
  /// Of the fastest row.
  double least_us_per_byte() const;
  /// Per link what a byte over it costs at these prices per us, one per row.
  std::vector<double> link_costs(std::span<const double> price) const;

 private:
  std::vector<double> us_per_byte_;
  std::vector<std::vector<int>> rows_of_;
};

}  // namespace rondo
