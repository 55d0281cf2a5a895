#include "joint_periods.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rondo {
namespace {

/// Of ways whose delays make periods.
constexpr int kMostLinksOfDelays = 4;
constexpr std::size_t kMostWayDelays = 32;
/// By this part delays are shorter where they make periods, so that a byte that leaves when one begins,
/// whatever is rounded, does not arrive before the one begins that is meant for it.
constexpr double kShorter = 1e-9;
/// Of the end: half of a seam.
constexpr double kSeam = 2e-8;

}  // namespace

/// Of links between places and switches that pass on, as many as ways have, and of those between places.
JointPeriods::JointPeriods(const Topology& topology, const PlaceWays& ways) {
  std::set<double> between;
  for (const Link& link : topology.links()) {
    const double delay_us = link.latency_us + topology.message_us_at_start(link);
    if (ways.is_place(link.src) && ways.is_place(link.dst)) {
      way_delays_us_.insert(delay_us);
    } else {
      between.insert(delay_us);
    }
  }
  std::set<double> sums{0};
  for (int links = 0; links < kMostLinksOfDelays && sums.size() < kMostWayDelays; ++links) {
    std::set<double> longer;
    for (const double sum : sums) {
      for (const double delay_us : between) longer.insert(sum + delay_us);
    }
    sums = std::move(longer);
    way_delays_us_.insert(sums.begin(), sums.end());
  }
}

void JointPeriods::add(const std::vector<double>& earliest_us, const std::vector<double>& behind_us) {
  before_us_.insert(earliest_us.begin(), earliest_us.end());
  behind_us_.insert(behind_us.begin(), behind_us.end());
}

PriceGrid JointPeriods::until(double us, std::size_t most) const {
  std::set<std::pair<double, char>> begins{{0, 0}};
  const auto add = [&](double delay_us, bool before_end) {
    const double begin_us = before_end ? us - delay_us * (1 - kShorter) : delay_us * (1 - kShorter);
    if (begins.size() < most && begin_us > 0 && begin_us < us) begins.emplace(begin_us, before_end ? 1 : 0);
  };
  for (const double late_us : behind_us_) add(late_us, true);
  for (const double early_us : before_us_) add(early_us, false);
  for (const double way_us : way_delays_us_) {
    for (const double late_us : behind_us_) add(late_us + way_us, true);
  }
  for (const double way_us : way_delays_us_) {
    for (const double early_us : before_us_) add(early_us + way_us, false);
  }
  return grid_of({begins.begin(), begins.end()}, us, kSameBegin);
}

SeamedPrices with_seams(const PriceGrid& grid, const std::vector<double>& price) {
  const double seam_us = kSeam * grid.until_us;
  const auto rows = static_cast<std::ptrdiff_t>(price.size() / grid.size());
  SeamedPrices seamed{{.from_us = {0}, .moves_with_end = {0}, .until_us = grid.until_us},
                      {price.begin(), price.begin() + rows}};
  for (std::size_t period = 1; period < grid.size(); ++period) {
    const auto before = price.begin() + static_cast<std::ptrdiff_t>(period - 1) * rows;
    const auto now = before + rows;
    if (std::equal(before, now, now)) continue;
    for (const double by_us : {-seam_us, seam_us}) {
      seamed.grid.from_us.push_back(grid.from_us[period] + by_us);
      seamed.grid.moves_with_end.push_back(grid.moves_with_end[period]);
    }
    std::transform(before, now, now, std::back_inserter(seamed.price),
                   [](double a, double b) { return std::max(a, b); });
    seamed.price.insert(seamed.price.end(), now, now + rows);
  }
  return seamed;
}

}  // namespace rondo
