#include "rondo/core/link_timetable.hpp"

#include <algorithm>
#include <cmath>

#include "rondo/core/hop_timing.hpp"
#include "rondo/core/units.hpp"

namespace rondo {

LinkTimetable::LinkTimetable(const Topology& topology, int concurrency, RateAccount::Reading reading)
    : topology_(topology), free_from_(topology.num_links(), 0.0), account_(topology, concurrency, reading) {}

bool LinkTimetable::can_start(const Hop& hop, double bytes, double t_us) const {
  if (hop.changes) return earliest_changing_start(hop, bytes, t_us) <= t_us + time_slack_us(t_us);
  return std::ranges::all_of(hop.links, [&](const HopLink& part) {
    const double start = t_us + part.offset_us_of(bytes);
    const double latest = start + time_slack_us(start);
    if (free_from_[part.link.index()] > latest && !account_.is_shared(part.link)) return false;
    return account_.room_from(part, hop.links, start, part.occupied_us(bytes)) <= latest;
  });
}

double LinkTimetable::earliest_start(const Hop& hop, double bytes, double not_before_us) const {
  if (hop.changes) return earliest_changing_start(hop, bytes, not_before_us);
  double t = not_before_us;
  for (bool moved = true; moved;) {
    moved = false;
    for (const HopLink& part : hop.links) {
      const double offset = part.offset_us_of(bytes);
      double start = t + offset;
      const double free = free_from_[part.link.index()];
      if (free > start + time_slack_us(start) && !account_.is_shared(part.link)) {
        t = free - offset;
        start = free;
        moved = true;
      }
      const double room = account_.room_from(part, hop.links, start, part.occupied_us(bytes));
      if (!std::isfinite(room)) return room;
      if (room > start + time_slack_us(start)) {
        t = room - offset;
        moved = true;
      }
    }
  }
  return t;
}

double LinkTimetable::changing_duration_us(const Hop& hop, double bytes, double t_us) const {
  return timing_from(topology_, hop, bytes, t_us).arrival_us - t_us;
}

double LinkTimetable::earliest_changing_start(const Hop& hop, double bytes, double not_before_us) const {
  double t = not_before_us;
  for (bool moved = true; moved;) {
    moved = false;
    t = up_from(topology_, hop, t);
    const HopTiming timing = timing_from(topology_, hop, bytes, t);
    if (!std::isfinite(timing.arrival_us)) return timing.arrival_us;
    for (std::size_t i = 0; i < hop.links.size() && !moved; ++i) {
      const HopLink& part = hop.links[i];
      const auto [start, end] = timing.uses[i];
      double room = start;
      if (!account_.is_shared(part.link)) room = std::max(room, free_from_[part.link.index()]);
      room = account_.room_from(part, hop.links, room, end - start);
      if (!std::isfinite(room)) return room;
      if (room <= start + time_slack_us(start)) continue;
      t += room - start;
      moved = true;
    }
  }
  return t;
}

void LinkTimetable::share(LinkId link) {
  if (account_.is_shared(link)) return;
  std::vector<RateAccount::Interval> taken;
  if (free_from_[link.index()] > 0) taken.push_back({0, free_from_[link.index()]});
  account_.share(link, taken);
}

void LinkTimetable::occupy(const Send& send, double bytes) {
  const double bandwidth = topology_.link(send.link).bandwidth_GBps;
  double rate = send.rate_GBps;
  if (!send.has_rate()) {
    rate =
        topology_.has_message_costs() ? bandwidth : transmission_us(bytes, 1) / (send.end_us - send.start_us);
  }
  HopLink part{send.link};
  part.us_per_byte = transmission_us(1, rate);
  part.share = rate < bandwidth * (1 - kWholeLink) ? rate / bandwidth : 1;
  if (part.share < 1) share(send.link);
  double& free = free_from_[send.link.index()];
  free = std::max(free, send.end_us);
  account_.add(part, send.start_us, send.end_us);
}

double LinkTimetable::reserve(const Hop& hop, std::span<const ChunkId> chunks, double bytes, double t_us,
                              std::vector<Send>& sends) {
  append_sends(topology_, hop, chunks, bytes, t_us, sends);
  const Send* send = sends.data() + (sends.size() - hop.links.size() * chunks.size());
  for (const HopLink& part : hop.links) {
    if (part.share < 1) share(part.link);
    double& free = free_from_[part.link.index()];
    free = std::max(free, send->end_us);
    account_.forget(part.link, t_us);
    account_.add(part, send->start_us, send->end_us);
    send += chunks.size();
  }
  return hop.changes ? sends.back().arrival_us : t_us + hop.duration_us(bytes);
}

double LinkTimetable::next_start_us(const Send& send) const {
  const double message_us = topology_.link(send.link).message_us;
  return message_us > 0 && account_.is_shared(send.link) ? send.start_us + message_us : send.end_us;
}

double LinkTimetable::share_left(const HopLink& part, double bytes, double t_us) const {
  if (!account_.is_shared(part.link)) return 1;
  const double start = t_us + part.offset_us_of(bytes);
  return account_.share_left(part.link, start, start + part.occupied_us(bytes));
}

}  // namespace rondo
