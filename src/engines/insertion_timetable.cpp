#include "insertion_timetable.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/core/units.hpp"

namespace rondo {

InsertionTimetable::InsertionTimetable(const Topology& topology, Reading reading)
    : reading_(reading), taken_(topology.num_links()), groups_of_link_(topology.num_links()) {
  for (const SharedBandwidth& shared : topology.shared_bandwidth()) {
    for (const LinkId l : shared.links) groups_of_link_[l.index()].push_back(groups_.size());
    groups_.push_back({shared.bandwidth_GBps});
  }
}

double InsertionTimetable::first_room(LinkId link, double start_us, double occupied_us) const {
  const std::vector<Interval>& taken = taken_[link.index()];
  const double slack = time_slack_us(start_us + occupied_us);
  auto next = std::ranges::partition_point(
      taken, [&](const Interval& interval) { return interval.end_us <= start_us + slack; });
  for (; next != taken.end() && next->start_us < start_us + occupied_us - slack; ++next)
    start_us = next->end_us;
  return start_us;
}

double InsertionTimetable::conflict_end(const Group& group, double start_us, double end_us,
                                        double rate_GBps) {
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
  for (auto use = at_or_after(start_us); use != last; ++use)
    conflict = std::max(conflict, too_much_at(use->start_us));
  return conflict;
}

double InsertionTimetable::earliest_start(const Hop& hop, double bytes, double not_before_us) const {
  double t = not_before_us;
  for (bool moved = true; moved;) {
    moved = false;
    for (const HopLink& part : hop.links) {
      const double offset = offset_us(hop, part, bytes);
      const double occupied = part.occupied_us(bytes);
      const double start = t + offset;
      double room = first_room(part.link, start, occupied);
      for (const std::size_t g : groups_of_link_[part.link.index()]) {
        const double rate = transmission_us(1, 1) / part.us_per_byte;
        if (rate > groups_[g].bandwidth_GBps * (1 + 1e-12)) return std::numeric_limits<double>::infinity();
        room = std::max(room, conflict_end(groups_[g], room, room + occupied, rate));
      }
      if (room > start + time_slack_us(start)) {
        t = room - offset;
        moved = true;
      }
    }
  }
  return t;
}

void InsertionTimetable::reserve(const Hop& hop, double bytes, double start_us) {
  for (const HopLink& part : hop.links) {
    const double start = start_us + offset_us(hop, part, bytes);
    const double end = start + part.occupied_us(bytes);
    const double slack = time_slack_us(end);
    std::vector<Interval>& taken = taken_[part.link.index()];
    const auto next = std::ranges::lower_bound(taken, start, {}, &Interval::start_us);
    const bool meets_next = next != taken.end() && std::abs(next->start_us - end) <= slack;
    if (next != taken.begin() && std::abs((next - 1)->end_us - start) <= slack) {
      (next - 1)->end_us = meets_next ? next->end_us : end;
      if (meets_next) taken.erase(next);
    } else if (meets_next) {
      next->start_us = start;
    } else {
      taken.insert(next, {start, end});
    }
    for (const std::size_t g : groups_of_link_[part.link.index()]) {
      Group& group = groups_[g];
      const auto at = std::ranges::upper_bound(group.uses, start, {}, &Use::start_us);
      group.uses.insert(at, {start, end, transmission_us(1, 1) / part.us_per_byte});
      group.longest_us = std::max(group.longest_us, end - start);
    }
  }
}

}  // namespace rondo
