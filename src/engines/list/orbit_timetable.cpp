#include "orbit_timetable.hpp"

#include <algorithm>

#include "rondo/core/schedule.hpp"

namespace rondo {

OrbitTimetable::OrbitTimetable(const Topology& topology, const FreeGroup& group, const OrbitHops& hops,
                               double chunk_bytes, int concurrency)
    : free_from_us_(group.num_link_orbits(), 0.0),
      message_us_(group.num_link_orbits(), 0.0),
      account_(topology, concurrency),
      wakes_(group.num_link_orbits()) {
  std::vector<double> least_us(free_from_us_.size(), kInfinity);  // that a chunk occupies a link
  for (const OrbitHop& hop : hops.hops()) {
    duration_us_.push_back(hop.hop.duration_us(chunk_bytes));
    first_use_.push_back(uses_.size());
    for (const HopLink& part : hop.hop.links) {
      const int link = group.place(part.link).orbit;
      const auto l = static_cast<std::size_t>(link);
      uses_.push_back({link, part.offset_us_of(chunk_bytes), part.occupied_us(chunk_bytes), part});
      HopLink& over = uses_.back().part;
      over.link = group.link(link, 0);
      wakes_.add(l, uses_.back().offset_us, hop.to);
      least_us[l] = std::min(least_us[l], uses_.back().occupied_us);
      if (part.share == 1 || account_.is_shared(over.link)) continue;
      account_.share(over.link, {});
      message_us_[l] = topology.link(over.link).message_us;
    }
  }
  first_use_.push_back(uses_.size());
  busy_until_us_.assign(duration_us_.size(), 0.0);
  wakes_.finish();
  const auto excess_of = [&](const Use& use) {
    return use.occupied_us / least_us[static_cast<std::size_t>(use.link)] - 1;
  };
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    const auto links = uses(static_cast<int>(h));
    double& excess = excess_.emplace_back(0);
    for (const Use& use : links) excess = std::max(excess, excess_of(use));
    slow_link_.push_back(excess_of(links.back()) > kSlow - 1 ? links.front().link : -1);
  }
}

bool OrbitTimetable::is_idle(int h, double t_us) {
  double& busy_until = busy_until_us_[static_cast<std::size_t>(h)];
  if (t_us < busy_until) return false;
  for (const Use& use : uses(h)) {
    const double start = t_us + use.offset_us;
    const double free = account_.is_shared(use.part.link)
                            ? account_.room_from(use.part, std::span(&use.part, 1), start, use.occupied_us)
                            : free_from_us_[static_cast<std::size_t>(use.link)];
    if (free <= start + time_slack_us(start)) continue;
    // What is taken stays taken; less the slack of this comparison and of those in room_from.
    busy_until = free - use.offset_us - 2 * time_slack_us(free + use.occupied_us);
    return false;
  }
  return true;
}

void OrbitTimetable::occupy(int h, double t_us, std::vector<Wake>& wakes) {
  for (const Use& use : uses(h)) {
    const auto l = static_cast<std::size_t>(use.link);
    const double start = t_us + use.offset_us;
    const double end = free_from_us_[l] = start + use.occupied_us;
    const bool is_shared = account_.is_shared(use.part.link);
    if (is_shared) {
      account_.forget(use.part.link, t_us);
      account_.add(use.part, start, end);
    }
    for (const double offset : wakes_.offsets_us(l)) {
      wakes.push_back({use.link, std::max(t_us, end - offset)});
      if (message_us_[l] > 0) wakes.push_back({use.link, std::max(t_us, start + message_us_[l] - offset)});
    }
  }
}

}  // namespace rondo
