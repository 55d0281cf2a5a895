#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "place_ways.hpp"
#include "price_grid.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// When the periods of a program of joint cuts begin: when data can first be at a node, when it is too late
/// to be there, and when it is too early or too late to be on a way between.
class JointPeriods {
 public:
  /// Without delays at nodes.
  JointPeriods(const Topology& topology, const PlaceWays& ways);
  /// When data can be at some node, from the start on, and how long before the end it has to be there.
  void add(const std::vector<double>& earliest_us, const std::vector<double>& behind_us);
  /// `most` at most.
  PriceGrid until(double us, std::size_t most) const;

 private:
  std::set<double> way_delays_us_ = {};
  std::set<double> before_us_ = {};
  std::set<double> behind_us_ = {};
};

/// Of the end: times that periods begin at and that are less apart are one.
inline constexpr double kSameBegin = 1e-6;

/// Prices and the periods that they are for.
struct SeamedPrices {
  PriceGrid grid;
  std::vector<double> price;
};

/// With seams between periods in which prices change, where the higher price holds for a moment, so that a
/// byte that is rounded into another period on one of its links pays no less; where prices do not change,
/// there is one period.
SeamedPrices with_seams(const PriceGrid& grid, const std::vector<double>& price);

}  // namespace rondo
