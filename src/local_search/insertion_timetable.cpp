#include "insertion_timetable.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {

InsertionTimetable::InsertionTimetable(const Topology& topology, Reading reading, int concurrency)
    : reading_(reading), taken_(topology.num_links()), account_(topology, concurrency, reading) {}

double InsertionTimetable::first_room(LinkId link, double start_us, double occupied_us) const {
  const std::vector<Interval>& taken = taken_[link.index()];
  const double slack = time_slack_us(start_us + occupied_us);
  auto next = std::ranges::partition_point(
      taken, [&](const Interval& interval) { return interval.end_us <= start_us + slack; });
  for (; next != taken.end() && next->start_us < start_us + occupied_us - slack; ++next)
    start_us = next->end_us;
  return start_us;
}

double InsertionTimetable::earliest_start(const Hop& hop, double bytes, double not_before_us) const {
  double t = not_before_us;
  for (bool moved = true; moved;) {
    moved = false;
    for (const HopLink& part : hop.links) {
      const double offset = offset_us(hop, part, bytes);
      const double occupied = part.occupied_us(bytes);
      const double start = t + offset;
      const double alone = account_.is_shared(part.link) ? start : first_room(part.link, start, occupied);
      const double room = account_.room_from(part, alone, occupied);
      if (!std::isfinite(room)) return room;
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
    std::vector<Interval>& taken = taken_[part.link.index()];
    if (part.share < 1 && !account_.is_shared(part.link)) {
      account_.share(part.link, taken);
      taken.clear();
    }
    account_.add(part, start, end);
    if (account_.is_shared(part.link)) continue;
    const double slack = time_slack_us(end);
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
  }
}

}  // namespace rondo
