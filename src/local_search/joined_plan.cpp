#include "rondo/local_search/joined_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

constexpr double kNotHeld = std::numeric_limits<double>::infinity();

/// Times that rounding errors alone tell apart are the same.
double rounded_up(double us) {
  return std::ceil(us * 1e6 - 1e-3) / 1e6;
}

}  // namespace

void JoinedPlan::add(int hop, std::span<const ChunkId> together, double start_us) {
  transfers.push_back({hop, static_cast<int>(chunks.size()), static_cast<int>(together.size()), start_us});
  chunks.insert(chunks.end(), together.begin(), together.end());
}

JoinedPlacing::JoinedPlacing(const JoinedSpace& space)
    : space_(space),
      is_wanted_(space.num_pairs(), 0),
      first_held_(is_wanted_.size(), kNotHeld),
      needed_(is_wanted_.size(), 0),
      empty_(space.topology(), space.concurrency()),
      gpu_ends_us_(space.group().num_gpu_orbits(), 0) {
  const Demand& demand = space.demand();
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const ChunkId chunk{c};
    first_held_[space.pair(chunk, demand.origin(chunk))] = demand.ready_us(chunk);
    for (const GpuId g : demand.destinations(chunk)) is_wanted_[space.pair(chunk, g)] = 1;
  }
  wanted_ = static_cast<std::size_t>(std::ranges::count(is_wanted_, 1));
  held_us_ = first_held_;
}

bool JoinedPlacing::place(JoinedPlan& plan) {
  if (!place_once(plan)) return false;
  // What is left ends earlier without it.
  if (leave_out_needless() && !place_once(JoinedPlan(placed_))) return false;
  std::ranges::stable_sort(placed_.transfers, {}, &JoinedTransfer::start_us);
  std::swap(plan, placed_);
  return true;
}

bool JoinedPlacing::place_once(const JoinedPlan& plan) {
  forget();
  LinkTimetable timetable = empty_;
  const auto try_blocked = [&] {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t b = 0; b < blocked_.size(); ++b) {
        const JoinedTransfer& t = plan.transfers[index(blocked_[b])];
        if (!can_start(plan, t)) continue;
        blocked_.erase(blocked_.begin() + static_cast<std::ptrdiff_t>(b));
        start(plan, t, timetable);
        moved = true;
        break;
      }
    }
  };
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const JoinedTransfer& t = plan.transfers[i];
    if (!can_start(plan, t)) {
      blocked_.push_back(static_cast<int>(i));
      continue;
    }
    start(plan, t, timetable);
    if (!blocked_.empty()) try_blocked();
  }
  if (!blocked_.empty() || delivered_ < wanted_) return false;
  JoinedQuality& quality = placed_.quality;
  double ends_us = 0;
  const std::size_t links = space_.group().num_link_orbits();
  for (std::size_t l = 0; l < links; ++l)
    ends_us += timetable.free_from(space_.group().link(static_cast<int>(l), 0));
  quality.mean_us = ends_us / static_cast<double>(links);
  for (const double end_us : gpu_ends_us_) {
    quality.finish_us = std::max(quality.finish_us, end_us);
    quality.mean_us += end_us / static_cast<double>(gpu_ends_us_.size());
  }
  quality.finish_us = rounded_up(quality.finish_us);
  quality.mean_us = rounded_up(quality.mean_us);
  return true;
}

void JoinedPlacing::forget() {
  for (const std::size_t i : touched_) held_us_[i] = first_held_[i];
  touched_.clear();
  blocked_.clear();
  placed_.transfers.clear();
  placed_.chunks.clear();
  placed_.quality = {};
  delivered_ = 0;
  std::ranges::fill(gpu_ends_us_, 0);
}

bool JoinedPlacing::can_start(const JoinedPlan& plan, const JoinedTransfer& t) const {
  const Hop& hop = space_.hop(t.hop);
  return std::ranges::all_of(plan.chunks_of(t), [&](ChunkId c) {
    return held_us_[space_.pair(c, hop.src)] < kNotHeld || held_us_[space_.pair(c, hop.dst)] < kNotHeld;
  });
}

void JoinedPlacing::start(const JoinedPlan& plan, const JoinedTransfer& t, LinkTimetable& timetable) {
  const Hop& hop = space_.hop(t.hop);
  const auto first = static_cast<int>(placed_.chunks.size());
  double not_before_us = 0;
  double bytes = 0;
  for (const ChunkId c : plan.chunks_of(t)) {
    double& held = held_us_[space_.pair(c, hop.dst)];
    if (held < kNotHeld) continue;
    held = 0;  // once in a transfer
    placed_.chunks.push_back(c);
    not_before_us = std::max(not_before_us, held_us_[space_.pair(c, hop.src)]);
    bytes += space_.demand().bytes(c);
  }
  const auto count = static_cast<int>(placed_.chunks.size()) - first;
  if (count == 0) return;
  const double start_us = timetable.earliest_start(hop, bytes, not_before_us);
  sends_.clear();
  const double arrival_us = timetable.reserve(hop, placed_.chunks[index(first)], bytes, start_us, sends_);
  placed_.transfers.push_back({t.hop, first, count, start_us});
  for (const ChunkId c : placed_.chunks_of(placed_.transfers.back())) {
    const std::size_t i = space_.pair(c, hop.dst);
    held_us_[i] = arrival_us;
    touched_.push_back(i);
    if (is_wanted_[i] == 0) continue;
    ++delivered_;
    double& end_us = gpu_ends_us_[index(space_.group().place(hop.dst).orbit)];
    end_us = std::max(end_us, arrival_us);
  }
}

/// Of the placed transfers; returns whether there was something.
bool JoinedPlacing::leave_out_needless() {
  bool found = false;
  for (auto t = placed_.transfers.rbegin(); t != placed_.transfers.rend(); ++t) {
    const Hop& hop = space_.hop(t->hop);
    int kept = 0;
    for (int i = t->first; i < t->first + t->count; ++i) {
      const ChunkId c = placed_.chunks[index(i)];
      if (is_wanted_[space_.pair(c, hop.dst)] == 0 && needed_[space_.pair(c, hop.dst)] == 0) continue;
      needed_[space_.pair(c, hop.src)] = 1;
      placed_.chunks[index(t->first + kept++)] = c;
    }
    found = found || kept < t->count;
    t->count = kept;
  }
  for (const std::size_t i : touched_) needed_[i] = 0;
  for (const JoinedTransfer& t : placed_.transfers) {
    for (const ChunkId c : placed_.chunks_of(t)) needed_[space_.pair(c, space_.hop(t.hop).src)] = 0;
  }
  std::erase_if(placed_.transfers, [](const JoinedTransfer& t) { return t.count == 0; });
  return found;
}

std::optional<JoinedPlan> joined_plan_of(const Schedule& schedule, PlanSpace& space) {
  if (space.demand.has_several_sources()) return std::nullopt;
  HopsByPath hops(space);
  const Transfers transfers = transfers_of(*space.topology, space.demand, schedule.sends);
  /// By start and hop: of one number, or one that has none.
  std::map<std::tuple<double, int, int>, std::vector<ChunkId>> groups;
  std::size_t sends = 0;
  for (std::size_t d = 0; d < transfers.deliveries.size(); ++d) {
    const Delivery& delivery = transfers.deliveries[d];
    const std::vector<LinkId> path = path_of(delivery, transfers, schedule.sends);
    sends += path.size();
    const std::int32_t number = schedule.sends[index(delivery.first_send)].transfer;
    const int which = number == kNoTransfer ? -1 - static_cast<int>(d) : number;
    groups[{delivery.start_us, hops.of(path), which}].push_back(delivery.chunk);
  }
  if (sends != schedule.sends.size()) return std::nullopt;  // what is copied is part of several paths
  JoinedPlan plan;
  for (const auto& [which, together] : groups) plan.add(std::get<1>(which), together, std::get<0>(which));
  if (!JoinedPlacing(JoinedSpace(space)).place(plan)) return std::nullopt;
  return plan;
}

std::optional<JoinedPlan> folded(const JoinedPlan& whole, const JoinedSpace& space) {
  JoinedPlan plan;
  std::map<std::pair<double, int>, std::vector<ChunkId>> groups;
  for (const JoinedTransfer& t : whole.transfers) {
    const auto [representative, element] = space.place_of_hop(t.hop);
    for (const ChunkId c : whole.chunks_of(t)) {
      if (space.group().place(space.demand().origin(c)).element != 0) continue;
      if (representative < 0) return std::nullopt;
      groups[{t.start_us, representative}].push_back(space.image(c, space.group().inverse(element)));
    }
  }
  for (const auto& [which, together] : groups) plan.add(which.second, together, which.first);
  return plan;
}

Schedule schedule_of(const JoinedPlan& plan, const JoinedSpace& space) {
  const Demand& demand = space.demand();
  Schedule schedule;
  std::vector<ChunkId> together;
  for (const JoinedTransfer& t : plan.transfers) {
    const double bytes = demand.bytes(plan.chunks_of(t));
    int element = 0;
    for (const JoinedSpace::HopImage& image : space.images_of_hop(t.hop)) {
      together.clear();
      for (const ChunkId c : plan.chunks_of(t)) together.push_back(space.image(c, element));
      append_sends(space.topology(), space.crossed(image.hop), together, bytes, t.start_us, schedule.sends);
      ++element;
    }
  }
  number_transfers(space.topology(), demand, schedule.sends);
  schedule.finish_us = plan.quality.finish_us;
  canonicalise(schedule);
  return schedule;
}

}  // namespace rondo
