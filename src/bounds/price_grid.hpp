#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// The periods of prices over time, for one end.
struct PriceGrid {
  std::vector<double> from_us;
  std::vector<char> moves_with_end;  ///< per period: whether it begins a fixed time before the end
  double until_us = 0;

  std::size_t size() const { return from_us.size(); }
  double end_us(std::size_t period) const { return period + 1 < size() ? from_us[period + 1] : until_us; }
  double length_us(std::size_t period) const { return end_us(period) - from_us[period]; }
  /// By how much the period gets longer when the end moves by 1.
  int growth(std::size_t period) const {
    const bool end_moves = period + 1 == size() || moves_with_end[period + 1];
    return (end_moves ? 1 : 0) - (moves_with_end[period] ? 1 : 0);
  }
  /// The last period that begins at `us` or before.
  std::size_t period_at(double us) const;
  /// That in which something is at the earliest that is there in `period`, and `us` later; size() where that
  /// is too late. Rounds down.
  std::size_t period_later(std::size_t period, double us) const;
};

/// Periods begin at the least sums of `delays_us` and that long before the end, `most_periods` at most.
PriceGrid price_grid(const std::vector<double>& delays_us, double until_us, std::size_t most_periods);
/// Of begins and whether they move with the end, in any order; those that are apart by less than `equal` of
/// the end are one.
PriceGrid grid_of(std::vector<std::pair<double, char>> begins, double until_us, double equal);
/// Of the end: by this much earlier than where prices cease to prove it, for rounding.
inline constexpr double kPriceRounding = 1e-11;
/// The same periods with an end that is so much later, as far as none becomes shorter than `least_length` of
/// the end.
PriceGrid moved(const PriceGrid& grid, double by_us, double least_length = kPriceRounding);

/// What delays bytes on the links: latencies, and message costs where something begins; different and above
/// 0, ascending.
std::vector<double> delays_of(const Topology& topology);

}  // namespace rondo
