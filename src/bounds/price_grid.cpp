#include "price_grid.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace rondo {
namespace {

/// Of the end: by this much delays are taken for shorter when they are summed, so that a byte that leaves
/// when a period begins arrives, whatever is rounded, when or after the period begins that is meant for it.
constexpr double kSlack = 1e-12;
/// Sums that differ by less are one.
constexpr double kEqual = 0.25 * kSlack;

/// 0 and the least sums, ascending.
std::vector<double> least_sums(const std::vector<double>& delays_us, double until_us, std::size_t most) {
  std::vector<double> sums;
  std::set<double> open{0};
  while (!open.empty() && sums.size() < most) {
    const double sum = *open.begin();
    open.erase(open.begin());
    if (!sums.empty() && sum - sums.back() < kEqual * until_us) continue;
    sums.push_back(sum);
    for (const double delay : delays_us) {
      const double next = sum + std::max(delay - kSlack * until_us, 0.0);
      if (next > sum && next < until_us) open.insert(next);
    }
  }
  return sums;
}

}  // namespace

std::size_t PriceGrid::period_at(double us) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(from_us, us) - from_us.begin()) - 1;
}

std::size_t PriceGrid::period_later(std::size_t period, double us) const {
  if (us == 0) return period;
  const double sum = from_us[period] + us;
  const double earliest = sum - std::numeric_limits<double>::epsilon() * sum;
  return earliest >= until_us ? size() : period_at(earliest);
}

PriceGrid price_grid(const std::vector<double>& delays_us, double until_us, std::size_t most_periods) {
  std::vector<std::pair<double, char>> begins;
  for (const double sum : least_sums(delays_us, until_us, most_periods / 2)) {
    begins.emplace_back(sum, 0);
    if (sum > 0 && sum < until_us) begins.emplace_back(until_us - sum, 1);
  }
  return grid_of(std::move(begins), until_us, kEqual);
}

PriceGrid grid_of(std::vector<std::pair<double, char>> begins, double until_us, double equal) {
  std::ranges::sort(begins);
  PriceGrid grid{.from_us = {}, .moves_with_end = {}, .until_us = until_us};
  for (const auto& [us, moves] : begins) {
    if (!grid.from_us.empty() && us - grid.from_us.back() < equal * until_us) continue;
    grid.from_us.push_back(us);
    grid.moves_with_end.push_back(moves);
  }
  return grid;
}

PriceGrid moved(const PriceGrid& grid, double by_us, double least_length) {
  for (std::size_t period = 0; period < grid.size(); ++period) {
    if (grid.growth(period) < 0)
      by_us = std::min(by_us, grid.length_us(period) - least_length * grid.until_us);
  }
  PriceGrid later = grid;
  if (by_us <= 0) return later;
  later.until_us += by_us;
  for (std::size_t period = 0; period < grid.size(); ++period) {
    if (grid.moves_with_end[period]) later.from_us[period] += by_us;
  }
  return later;
}

std::vector<double> delays_of(const Topology& topology) {
  std::set<double> delays;
  for (const Link& link : topology.links()) {
    delays.insert(link.latency_us);
    delays.insert(topology.message_us_at_start(link));
  }
  delays.erase(0);
  return {delays.begin(), delays.end()};
}

}  // namespace rondo
