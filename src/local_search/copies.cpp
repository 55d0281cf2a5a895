#include "copies.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "rondo/core/index.hpp"

namespace rondo {

std::size_t links_in_common(const Hop& a, const Hop& b) {
  std::size_t n = 0;
  while (n < std::min(a.links.size(), b.links.size()) && a.links[n].link == b.links[n].link) ++n;
  return n;
}

bool may_be_copied(const Topology& topology, const Hop& hop, const Hop& copy) {
  const std::size_t common = links_in_common(hop, copy);
  if (common == 0 || common == hop.links.size() || common == copy.links.size()) return false;
  if (hop.changes || copy.changes || hop.divisor != copy.divisor) return false;
  if (!topology.node(topology.link(hop.links[common - 1].link).dst).multicast) return false;
  for (std::size_t i = 0; i < common; ++i) {
    if (hop.links[i].us_per_byte != copy.links[i].us_per_byte) return false;
  }
  return true;
}

bool enters_again(const Topology& topology, const Hop& hop, std::size_t first_link, const Hop& other) {
  return std::ranges::any_of(std::span(hop.links).subspan(first_link), [&](const HopLink& part) {
    const NodeId to = topology.link(part.link).dst;
    return std::ranges::any_of(other.links,
                               [&](const HopLink& taken) { return topology.link(taken.link).dst == to; });
  });
}

CopyTrees::CopyTrees(const TransferPlan& plan, const PlanSpace& space, const std::vector<char>& alone)
    : plan_(plan), space_(space) {
  const auto& transfers = plan.transfers;
  if (std::ranges::none_of(transfers, [](const PlannedTransfer& t) { return t.copy_of >= 0; })) return;
  std::vector<int> last(transfers.size(), -1);  // of the tree that the plan has this transfer as original of
  next_.assign(transfers.size(), -1);
  first_link_.assign(transfers.size(), 0);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    original_.push_back(static_cast<int>(i));
    if (!alone.empty() && alone[i] != 0) continue;
    int& before = last[index(original_of(transfers, i))];
    if (before >= 0) {
      original_[i] = original_[index(before)];
      next_[index(before)] = static_cast<int>(i);
      for_each(original_[i], [&](const Member& other) {
        if (other.transfer == static_cast<int>(i)) return;
        first_link_[i] =
            std::max(first_link_[i],
                     links_in_common(space.hop(transfers[i]), space.hop(transfers[index(other.transfer)])));
      });
    }
    before = static_cast<int>(i);
  }
}

double CopyTrees::earliest_start(const InsertionTimetable& timetable, int original,
                                 double not_before_us) const {
  double start = not_before_us;
  for (bool moved = true; moved && std::isfinite(start);) {
    moved = false;
    for_each(original, [&](const Member& member) {
      const PlannedTransfer& t = plan_.transfers[index(member.transfer)];
      const double room = timetable.earliest_start(space_.hop(t), space_.bytes(t), start, member.first_link);
      moved = moved || room > start + time_slack_us(start);
      start = room;
    });
  }
  return start;
}

double CopyTrees::place_backwards(InsertionTimetable& timetable, int original,
                                  const std::vector<double>& needed_from_us) const {
  const PlannedTransfer& first = plan_.transfers[index(original)];
  const double bytes = space_.bytes(first);
  if (is_single(original)) {
    const Hop& hop = space_.hop(first);
    const double end = timetable.earliest_start(hop, bytes, needed_from_us[index(original)]);
    timetable.reserve(hop, bytes, end);
    return end + timetable.duration_us(hop, bytes, end);
  }
  const auto hop_of = [&](const Member& member) -> const Hop& {
    return space_.hop(plan_.transfers[index(member.transfer)]);
  };
  double start = 0;
  for_each(original, [&](const Member& member) {
    start = std::max(start, needed_from_us[index(member.transfer)] + hop_of(member).duration_us(bytes));
  });
  for (bool moved = true; moved && std::isfinite(start);) {
    moved = false;
    for_each(original, [&](const Member& member) {
      const double end = start - hop_of(member).duration_us(bytes);
      const double room = timetable.earliest_start(hop_of(member), bytes, end, member.first_link);
      if (room <= end + time_slack_us(end)) return;
      start += room - end;
      moved = true;
    });
  }
  for_each(original, [&](const Member& member) {
    timetable.reserve(hop_of(member), bytes, start - hop_of(member).duration_us(bytes), member.first_link);
  });
  return start;
}

void leave_tree(TransferPlan& plan, std::size_t i) {
  auto& transfers = plan.transfers;
  if (transfers[i].copy_of >= 0) {
    transfers[i].copy_of = -1;
    return;
  }
  int original = -1;
  for (std::size_t j = i + 1; j < transfers.size() && transfers[j].chunk == transfers[i].chunk; ++j) {
    if (transfers[j].copy_of != static_cast<int>(i)) continue;
    transfers[j].copy_of = original;
    if (original < 0) original = static_cast<int>(j);
  }
}

}  // namespace rondo
