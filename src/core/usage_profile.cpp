#include "rondo/core/usage_profile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/core/time_slack.hpp"

namespace rondo {
namespace {

/// Relative; amounts that sum to the capacity but for rounding fit.
constexpr double kProfileRounding = 1e-11;

}  // namespace

double UsageProfile::room_from(double start_us, double occupied_us, double amount) const {
  const double limit = capacity_ * (1 + kProfileRounding) - amount;
  if (limit < 0) return std::numeric_limits<double>::infinity();
  start_us = std::max(start_us, forgotten_us_);
  double end_us = start_us + occupied_us;
  double slack = time_slack_us(end_us);
  auto behind = std::ranges::lower_bound(steps_, end_us - slack, {}, &Step::from_us);
  for (;;) {
    // The last step in the way decides.
    auto step = behind;
    double until_us = step == steps_.end() ? std::numeric_limits<double>::infinity() : step->from_us;
    while (step != steps_.begin() && until_us > start_us + slack && (step - 1)->used <= limit) {
      --step;
      until_us = step->from_us;
    }
    if (step == steps_.begin() || until_us <= start_us + slack) return start_us;
    start_us = until_us;
    end_us = start_us + occupied_us;
    slack = time_slack_us(end_us);
    while (behind != steps_.end() && behind->from_us < end_us - slack) ++behind;
  }
}

double UsageProfile::most_used(double start_us, double end_us) const {
  const double slack = time_slack_us(end_us);
  auto step = std::ranges::upper_bound(steps_, start_us + slack, {}, &Step::from_us);
  double most = step == steps_.begin() ? 0 : (step - 1)->used;
  for (; step != steps_.end() && step->from_us < end_us - slack; ++step) most = std::max(most, step->used);
  return most;
}

std::size_t UsageProfile::step_at(double t_us) {
  const double slack = time_slack_us(t_us);
  const auto at = std::ranges::lower_bound(steps_, t_us - slack, {}, &Step::from_us);
  const auto position = static_cast<std::size_t>(at - steps_.begin());
  if (at == steps_.end() || at->from_us > t_us + slack)
    steps_.insert(at, {t_us, position == 0 ? 0 : steps_[position - 1].used});
  return position;
}

void UsageProfile::merge(std::size_t step) {
  const double before = step == 0 ? 0 : steps_[step - 1].used;
  if (std::abs(steps_[step].used - before) <= kProfileRounding * capacity_)
    steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(step));
}

void UsageProfile::add(double start_us, double end_us, double amount) {
  const std::size_t first = step_at(start_us);
  const std::size_t last = step_at(end_us);
  for (std::size_t s = first; s < last; ++s) steps_[s].used += amount;
  merge(last);
  if (first < last) merge(first);
}

void UsageProfile::forget(double before_us) {
  if (before_us <= forgotten_us_) return;
  forgotten_us_ = before_us;
  std::size_t ended = 0;
  while (ended + 1 < steps_.size() && steps_[ended + 1].from_us < before_us) ++ended;
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(ended));
}

}  // namespace rondo
