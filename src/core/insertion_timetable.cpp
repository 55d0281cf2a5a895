#include "rondo/core/insertion_timetable.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "rondo/core/hop_timing.hpp"

namespace rondo {
namespace {

/// Of a hop, as many as most have at most.
constexpr std::size_t kLinksRemembered = 8;
/// Intervals that are looked at one by one before the others are halved.
constexpr std::ptrdiff_t kNear = 8;

}  // namespace

InsertionTimetable::InsertionTimetable(const Topology& topology, Reading reading, int concurrency,
                                       double finish_us)
    : topology_(topology),
      reading_(reading),
      finish_us_(finish_us),
      taken_(topology.num_links()),
      account_(topology, concurrency, reading) {}

InsertionTimetable::ChangingUse InsertionTimetable::changing(const Hop& hop, double bytes,
                                                             double start_us) const {
  ChangingUse use;
  if (reading_ == Reading::forwards) {
    const HopTiming timing = timing_from(topology_, hop, bytes, start_us);
    for (const auto& [start, end] : timing.uses) use.on_link.push_back({start, end});
    use.duration_us = timing.arrival_us - start_us;
    return use;
  }
  const HopTiming timing = timing_until(topology_, hop, bytes, finish_us_ - start_us);
  for (const auto& [start, end] : timing.uses) use.on_link.push_back({finish_us_ - end, finish_us_ - start});
  use.duration_us = finish_us_ - timing.start_us - start_us;
  return use;
}

double InsertionTimetable::earliest_changing_start(const Hop& hop, double bytes, double not_before_us) const {
  double t = not_before_us;
  for (bool moved = true; moved;) {
    moved = false;
    if (reading_ == Reading::forwards) t = up_from(topology_, hop, t);
    const ChangingUse use = changing(hop, bytes, t);
    if (!std::isfinite(use.duration_us)) return use.duration_us;
    for (std::size_t i = 0; i < hop.links.size() && !moved; ++i) {
      const HopLink& part = hop.links[i];
      const auto [start, end] = use.on_link[i];
      const double alone = account_.is_shared(part.link) ? start : first_room(part.link, start, end - start);
      const double room = account_.room_from(part, hop.links, alone, end - start);
      if (!std::isfinite(room)) return room;
      if (room <= start + time_slack_us(start)) continue;
      t += room - start;
      moved = true;
    }
  }
  return t;
}

double InsertionTimetable::first_room(LinkId link, double start_us, double occupied_us, double until_us,
                                      const Interval*& from) const {
  const std::vector<Interval>& taken = taken_[link.index()];
  const Interval* const end = taken.data() + taken.size();
  const double slack = time_slack_us(start_us + occupied_us);
  const auto is_over = [&](const Interval& interval) { return interval.end_us <= start_us + slack; };
  const Interval* next = from == nullptr ? taken.data() : from;
  // Mostly it is one of the first behind the last one that was found.
  const Interval* const near = from == nullptr ? next : next + std::min(kNear, end - next);
  while (next != near && is_over(*next)) ++next;
  if (next == near) next = std::partition_point(next, end, is_over);
  for (; next != end && next->start_us < start_us + occupied_us - slack && start_us <= until_us; ++next)
    start_us = next->end_us;
  from = next;
  return start_us;
}

bool InsertionTimetable::is_free(const Hop& hop, double bytes, double start_us,
                                 std::size_t first_link) const {
  if (hop.changes) return earliest_changing_start(hop, bytes, start_us) <= start_us + time_slack_us(start_us);
  const std::span<const HopLink> links = std::span(hop.links).subspan(first_link);
  return std::ranges::all_of(links, [&](const HopLink& part) {
    const double start = start_us + offset_us(hop, part, bytes);
    const double occupied = part.occupied_us(bytes);
    const double latest = start + time_slack_us(start);
    if (!account_.is_shared(part.link) && first_room(part.link, start, occupied, start) > latest)
      return false;
    return account_.room_from(part, links, start, occupied) <= latest;
  });
}

double InsertionTimetable::earliest_start(const Hop& hop, double bytes, double not_before_us,
                                          std::size_t first_link, double until_us) const {
  if (hop.changes) return earliest_changing_start(hop, bytes, not_before_us);
  const std::span<const HopLink> links = std::span(hop.links).subspan(first_link);
  double t = not_before_us;
  std::array<const Interval*, kLinksRemembered> not_over{};
  // In turn, until as many as there are have had room one after another.
  std::size_t with_room = 0;
  for (std::size_t i = 0; with_room < links.size(); i = i + 1 < links.size() ? i + 1 : 0) {
    ++looks_;
    const HopLink& part = links[i];
    const double offset = offset_us(hop, part, bytes);
    const double occupied = part.occupied_us(bytes);
    const double start = t + offset;
    const Interval* forgotten = nullptr;
    const Interval*& from = i < kLinksRemembered ? not_over[i] : forgotten;
    double room = account_.is_shared(part.link)
                      ? start
                      : first_room(part.link, start, occupied, until_us + offset, from);
    room = account_.room_from(part, links, room, occupied);
    if (!std::isfinite(room)) return room;
    ++with_room;
    if (room > start + time_slack_us(start)) {
      t = room - offset;
      // The account may have more to say of a later start.
      with_room = account_.limits(part.link) ? 0 : 1;
      if (t > until_us) return t;
    }
  }
  return t;
}

void InsertionTimetable::reserve(const Hop& hop, double bytes, double start_us, std::size_t first_link) {
  if (hop.changes) {
    const ChangingUse use = changing(hop, bytes, start_us);
    for (std::size_t i = 0; i < hop.links.size(); ++i)
      take(hop.links[i], use.on_link[i].start_us, use.on_link[i].end_us);
    return;
  }
  for (const HopLink& part : std::span(hop.links).subspan(first_link)) {
    const double start = start_us + offset_us(hop, part, bytes);
    take(part, start, start + part.occupied_us(bytes));
  }
}

void InsertionTimetable::release(const Hop& hop, double bytes, double start_us, std::size_t first_link) {
  for (const HopLink& part : std::span(hop.links).subspan(first_link)) {
    const double start = start_us + offset_us(hop, part, bytes);
    const double end = start + part.occupied_us(bytes);
    account_.remove(part, start, end);
    if (account_.is_shared(part.link)) continue;
    const double slack = time_slack_us(end);
    std::vector<Interval>& taken = taken_[part.link.index()];
    // It lies in one interval, maybe among others that are adjacent.
    const auto around = std::ranges::partition_point(
        taken, [&](const Interval& interval) { return interval.end_us <= start + slack; });
    const Interval after{end, around->end_us};
    const bool begins = around->start_us >= start - slack;
    around->end_us = start;
    const auto next = begins ? taken.erase(around) : around + 1;
    if (after.end_us > end + slack) taken.insert(next, after);
  }
}

void InsertionTimetable::occupy(const Send& send) {
  const double bandwidth = topology_.link(send.link).bandwidth_GBps;
  HopLink part{send.link};
  part.us_per_byte = transmission_us(1, send.rate_GBps);
  part.share = send.rate_GBps < bandwidth * (1 - kWholeLink) ? send.rate_GBps / bandwidth : 1;
  take(part, send.start_us, send.end_us);
}

void InsertionTimetable::take(const HopLink& part, double start, double end) {
  std::vector<Interval>& taken = taken_[part.link.index()];
  if (part.share < 1 && !account_.is_shared(part.link)) {
    account_.share(part.link, taken);
    taken.clear();
  }
  account_.add(part, start, end);
  if (account_.is_shared(part.link)) return;
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

}  // namespace rondo
