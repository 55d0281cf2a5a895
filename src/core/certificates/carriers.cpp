#include "carriers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Of the amount: far below what a bound is quoted to. Without it, rounding could put the end of what is
/// carried just before links go down behind the time when they are up again.
constexpr double kCarriedTolerance = 1e-12;

}  // namespace

void Carriers::add(const Link& link, double from_us, double shift_us, double length) {
  double GBps = link.bandwidth_GBps;
  const auto rate_of = [&](double bandwidth_GBps) { return bandwidth_GBps * kBytesPerUsPerGBps * length; };
  auto next = link.bandwidth_steps.begin();
  for (; next != link.bandwidth_steps.end() && next->from_us + shift_us <= from_us; ++next) GBps = next->GBps;
  carriers_.push_back({from_us, rate_of(GBps)});
  for (; next != link.bandwidth_steps.end(); ++next) {
    changes_.push_back({next->from_us + shift_us, rate_of(next->GBps) - rate_of(GBps)});
    GBps = next->GBps;
  }
}

/// What is carried is piecewise linear in T, with a corner wherever the rate changes.
double Carriers::time_for(double amount) const {
  std::vector<Carrier> corners = carriers_;
  corners.insert(corners.end(), changes_.begin(), changes_.end());
  std::sort(corners.begin(), corners.end(),
            [](const Carrier& a, const Carrier& b) { return a.from_us < b.from_us; });
  const double tolerance = kCarriedTolerance * amount;
  double rate = 0;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    rate += corners[i].rate;
    const double until_us = i + 1 < corners.size() ? corners[i + 1].from_us : kNever;
    const double carried = rate > 0 ? rate * (until_us - corners[i].from_us) : 0;
    if (carried >= amount - tolerance) return corners[i].from_us + amount / rate;
    amount -= carried;
  }
  return kNever;
}

double Carriers::time_for_whole(double amount, double piece) const {
  const double fluid_us = time_for(amount);
  if (!changes_.empty()) return fluid_us;
  const auto time_of = [&](const Carrier& c, double pieces) { return c.from_us + pieces * piece / c.rate; };
  // What is carried by then, and when each carrier ends its next piece.
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>,
                      std::greater<>>
      next;
  std::vector<double> carried(carriers_.size(), 0);
  double missing = std::round(amount / piece);
  for (std::size_t i = 0; i < carriers_.size(); ++i) {
    const Carrier& c = carriers_[i];
    carried[i] = std::max(0.0, std::floor((fluid_us - c.from_us) * c.rate / piece * (1 + 1e-9)));
    missing -= carried[i];
    next.emplace(time_of(c, carried[i] + 1), i);
  }
  double end_us = fluid_us;
  for (; missing > 0.5; --missing) {
    const auto [time_us, i] = next.top();
    next.pop();
    end_us = time_us;
    next.emplace(time_of(carriers_[i], ++carried[i] + 1), i);
  }
  return end_us;
}

}  // namespace rondo
