#include "rondo/core/bandwidth_steps.hpp"

#include <algorithm>

#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr double kStaysDown = std::numeric_limits<double>::infinity();

/// The first step after `t_us`, or never.
double next_step_us(const Link& link, double t_us) {
  const auto& steps = link.bandwidth_steps;
  const auto next = std::ranges::upper_bound(steps, t_us, {}, &BandwidthStep::from_us);
  return next == steps.end() ? kStaysDown : next->from_us;
}

}  // namespace

double bandwidth_at(const Link& link, double t_us) {
  const auto& steps = link.bandwidth_steps;
  const auto next = std::ranges::upper_bound(steps, t_us, {}, &BandwidthStep::from_us);
  return next == steps.begin() ? link.bandwidth_GBps : std::prev(next)->GBps;
}

double flown_by_us(const Topology& topology, std::span<const HopLink> links, double bytes, double from_us,
                   double most_GBps) {
  for (double x = from_us;;) {
    double rate_GBps = most_GBps;
    double until_us = kStaysDown;
    for (const HopLink& part : links) {
      const Link& link = topology.link(part.link);
      // A step that rounding has put a little later than x counts as at x.
      const double there_us = x + part.offset_us + time_slack_us(x + part.offset_us);
      rate_GBps = std::min(rate_GBps, bandwidth_at(link, there_us));
      until_us = std::min(until_us, next_step_us(link, there_us) - part.offset_us);
    }
    const double needed_us = rate_GBps > 0 ? transmission_us(bytes, rate_GBps) : kStaysDown;
    if (x + needed_us <= until_us) return x + needed_us;
    if (until_us == kStaysDown) return kStaysDown;
    if (rate_GBps > 0) bytes -= (until_us - x) * rate_GBps * kBytesPerUsPerGBps;
    x = until_us;
  }
}

}  // namespace rondo
