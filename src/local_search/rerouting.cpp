#include "rondo/local_search/rerouting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "insertion_timetable.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr int kNoHop = -1;

std::vector<LinkId> links_of(const Hop& hop) {
  std::vector<LinkId> links;
  for (const HopLink& part : hop.links) links.push_back(part.link);
  return links;
}

/// Per hop of the kept plan the same one of `space`; kNoHop where a link is gone.
std::vector<int> same_hops(const PlanSpace& kept, std::span<const LinkId> links, PlanSpace& space) {
  std::map<std::vector<LinkId>, int> known;
  for (std::size_t h = 0; h < space.hops.size(); ++h)
    known.emplace(links_of(space.hops[h]), static_cast<int>(h));
  std::vector<int> same;
  for (const Hop& hop : kept.hops) {
    std::vector<LinkId> path = links_of(hop);
    for (LinkId& link : path) link = links[link.index()];
    if (!std::ranges::all_of(path, &LinkId::valid)) {
      same.push_back(kNoHop);
      continue;
    }
    auto at = known.find(path);
    if (at == known.end()) at = known.emplace(path, space.add(make_hop(*space.topology, path))).first;
    same.push_back(at->second);
  }
  return same;
}

class Placing {
 public:
  explicit Placing(const PlanSpace& space)
      : space_(space),
        gpus_(space.topology->num_gpus()),
        timetable_(*space.topology, InsertionTimetable::Reading::forwards, space.concurrency),
        bringer_(space.demand.num_chunks() * gpus_, kNobody) {
    for (std::size_t c = 0; c < space.demand.num_chunks(); ++c)
      bringer(ChunkId{c}, space.demand.origin(ChunkId{c})) = kOrigin;
  }

  bool holds(ChunkId chunk, GpuId gpu) const { return bringer(chunk, gpu) != kNobody; }

  /// Over `kept_hop` if that is in time, else over the hop that arrives first. False where no GPU that holds
  /// the chunk has a hop to there.
  bool place(ChunkId chunk, GpuId to, int kept_hop, double in_time_us) {
    int best = kNoHop;
    double arrives_us = kInfinity;
    const auto look = [&](int h) {
      const Hop& hop = space_.hops[index(h)];
      if (!holds(chunk, hop.src)) return;
      const double at_best_us = held_from_us(chunk, hop.src) + hop.duration_us(space_.demand.bytes(chunk));
      if (at_best_us >= arrives_us) return;
      const double arrival_us = arrival_over(chunk, h);
      if (arrival_us >= arrives_us - (best == kept_hop ? time_slack_us(arrives_us) : 0)) return;
      best = h;
      arrives_us = arrival_us;
    };
    if (kept_hop != kNoHop) look(kept_hop);
    if (arrives_us > in_time_us || best == kNoHop) {
      for (const int h : space_.into[to.index()]) {
        if (h != kept_hop) look(h);
      }
    }
    if (best == kNoHop) return false;
    take(chunk, best);
    return true;
  }

  /// Over as many hops as it takes: Dijkstra's algorithm over arrivals, as links are taken now.
  bool place_on_path(ChunkId chunk, GpuId to) {
    struct Reached {
      double at_us = kInfinity;
      int hop = kNoHop;
      bool is_final = false;
    };
    std::vector<Reached> reached(gpus_);
    for (std::size_t g = 0; g < gpus_; ++g) {
      if (holds(chunk, GpuId{g})) reached[g].at_us = held_from_us(chunk, GpuId{g});
    }
    for (;;) {
      std::size_t next = gpus_;
      for (std::size_t g = 0; g < gpus_; ++g) {
        const bool is_nearer =
            !reached[g].is_final && reached[g].at_us < (next == gpus_ ? kInfinity : reached[next].at_us);
        if (is_nearer) next = g;
      }
      if (next == gpus_) return false;
      reached[next].is_final = true;
      if (next == to.index()) break;
      for (std::size_t h = 0; h < space_.hops.size(); ++h) {
        const Hop& hop = space_.hops[h];
        Reached& end = reached[hop.dst.index()];
        if (hop.src.index() != next || end.is_final) continue;
        const double bytes = space_.demand.bytes(chunk);
        const double arrival_us =
            timetable_.earliest_start(hop, bytes, reached[next].at_us) + hop.duration_us(bytes);
        if (arrival_us < end.at_us) end = {arrival_us, static_cast<int>(h)};
      }
    }
    std::vector<int> path;
    for (std::size_t g = to.index(); reached[g].hop != kNoHop;
         g = space_.hops[index(path.back())].src.index())
      path.push_back(reached[g].hop);
    for (auto h = path.rbegin(); h != path.rend(); ++h) take(chunk, *h);
    return true;
  }

  TransferPlan done() {
    drop_useless(plan_, space_);
    plan_.quality = quality_of(plan_.transfers, space_);
    return std::move(plan_);
  }

 private:
  static constexpr int kNobody = -2;
  static constexpr int kOrigin = -1;

  int& bringer(ChunkId chunk, GpuId gpu) { return bringer_[chunk.index() * gpus_ + gpu.index()]; }
  int bringer(ChunkId chunk, GpuId gpu) const { return bringer_[chunk.index() * gpus_ + gpu.index()]; }
  double held_from_us(ChunkId chunk, GpuId gpu) const {
    const int t = bringer(chunk, gpu);
    return t >= 0 ? space_.arrival_us(plan_.transfers[index(t)]) : space_.demand.ready_us(chunk);
  }
  double start_over(ChunkId chunk, int h) const {
    const Hop& hop = space_.hops[index(h)];
    return timetable_.earliest_start(hop, space_.demand.bytes(chunk), held_from_us(chunk, hop.src));
  }
  double arrival_over(ChunkId chunk, int h) const {
    return start_over(chunk, h) + space_.hops[index(h)].duration_us(space_.demand.bytes(chunk));
  }
  void take(ChunkId chunk, int h) {
    const Hop& hop = space_.hops[index(h)];
    const double start_us = start_over(chunk, h);
    timetable_.reserve(hop, space_.demand.bytes(chunk), start_us);
    plan_.transfers.push_back({chunk, h, std::max(bringer(chunk, hop.src), -1), start_us});
    bringer(chunk, hop.dst) = static_cast<int>(plan_.transfers.size()) - 1;
  }

  const PlanSpace& space_;
  std::size_t gpus_;
  InsertionTimetable timetable_;
  std::vector<int> bringer_;
  TransferPlan plan_;
};

}  // namespace

std::optional<TransferPlan> rerouted(const ProvenSchedule& kept, std::span<const LinkId> links,
                                     PlanSpace& space, double due_scale) {
  PlanSpace before = make_plan_space(kept.topology, kept.demand);
  const std::optional<TransferPlan> plan = plan_of(kept.schedule, before);
  if (!plan) return std::nullopt;
  const std::vector<int> same = same_hops(before, links, space);
  if (std::ranges::find(same, kNoHop) != same.end()) {
    // A plan space of many GPUs has the hops of the schedule alone.
    const HopTable table(*space.topology);
    std::map<std::vector<LinkId>, int> known;
    for (const Hop& hop : space.hops) known.emplace(links_of(hop), 0);
    for (const Hop& hop : table.hops()) {
      if (known.emplace(links_of(hop), 0).second) space.add(hop);
    }
  }
  const std::vector<double> due = due_times(*plan, latest_starts(*plan, before));

  Placing placing(space);
  for (std::size_t i = 0; i < plan->transfers.size(); ++i) {
    const PlannedTransfer& t = plan->transfers[i];
    const GpuId to = before.hop(t).dst;
    if (placing.holds(t.chunk, to)) continue;
    if (placing.place(t.chunk, to, same[index(t.hop)], due[i] * due_scale)) continue;
    if (placing.place_on_path(t.chunk, to)) continue;
    throw Error(ExitCode::unavailable,
                fmt::format("chunk {} finds no path to GPU {} on '{}' without the links that are gone",
                            t.chunk.value, to.value, space.topology->name()));
  }
  return placing.done();
}

}  // namespace rondo
