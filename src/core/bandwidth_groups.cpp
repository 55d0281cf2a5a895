#include "rondo/core/bandwidth_groups.hpp"

#include <algorithm>
#include <limits>

#include "rondo/core/hops.hpp"

namespace rondo {

BandwidthGroups::BandwidthGroups(const Topology& topology) : of_link_(topology.num_links()) {
  for (const SharedBandwidth& shared : topology.shared_bandwidth()) {
    for (const LinkId l : shared.links) of_link_[l.index()].push_back(groups_.size());
    groups_.push_back({shared.bandwidth_GBps});
  }
}

double BandwidthGroups::conflict_end(const Group& group, double start_us, double end_us, double rate_GBps) {
  const double slack = time_slack_us(end_us);
  const double limit = group.bandwidth_GBps * (1 + 1e-12) - rate_GBps;
  const auto at_or_after = [&](double t) {
    return std::ranges::lower_bound(group.uses, t, {}, &Use::start_us);
  };
  // The sum of rates grows only where a use begins: at the start and at the starts after it.
  const auto first = at_or_after(start_us - group.longest_us - slack);
  const auto last = at_or_after(end_us - slack);
  const auto too_much_at = [&](double t) {
    double sum = 0;
    double first_end = std::numeric_limits<double>::infinity();
    for (auto use = first; use != last; ++use) {
      if (use->start_us > t + slack || use->end_us <= t + slack) continue;
      sum += use->rate_GBps;
      first_end = std::min(first_end, use->end_us);
    }
    return sum > limit ? first_end : -1.0;
  };
  double conflict = too_much_at(start_us);
  for (auto use = at_or_after(start_us); use < last; ++use)
    conflict = std::max(conflict, too_much_at(use->start_us));
  return conflict;
}

double BandwidthGroups::room_from(LinkId link, double start_us, double occupied_us, double rate_GBps) const {
  for (const std::size_t g : of_link_[link.index()]) {
    const Group& group = groups_[g];
    if (rate_GBps > group.bandwidth_GBps * (1 + 1e-12)) return std::numeric_limits<double>::infinity();
    start_us = std::max(start_us, conflict_end(group, start_us, start_us + occupied_us, rate_GBps));
  }
  return start_us;
}

void BandwidthGroups::add(LinkId link, double start_us, double end_us, double rate_GBps) {
  for (const std::size_t g : of_link_[link.index()]) {
    Group& group = groups_[g];
    const auto at = std::ranges::upper_bound(group.uses, start_us, {}, &Use::start_us);
    group.uses.insert(at, {start_us, end_us, rate_GBps});
    group.longest_us = std::max(group.longest_us, end_us - start_us);
  }
}

void BandwidthGroups::forget(LinkId link, double before_us) {
  for (const std::size_t g : of_link_[link.index()])
    std::erase_if(groups_[g].uses, [&](const Use& use) { return use.end_us < before_us; });
}

}  // namespace rondo
