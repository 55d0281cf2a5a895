#include "rondo/local_search/rerouting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "hops_by_path.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr int kNoHop = -1;
/// Hops that the paths of all late transfers together may compare; afterwards those of one hop are enough.
constexpr double kMostLooksAtPaths = 1e6;

/// Per hop of the kept plan the same one of `space`; kNoHop where a link is gone.
std::vector<int> same_hops(const PlanSpace& kept, std::span<const LinkId> links, PlanSpace& space) {
  HopsByPath hops(space);
  std::vector<int> same;
  for (const Hop& hop : kept.hops) {
    std::vector<LinkId> path = path_of(hop);
    for (LinkId& link : path) link = links[link.index()];
    if (!std::ranges::all_of(path, &LinkId::valid)) {
      same.push_back(kNoHop);
      continue;
    }
    same.push_back(hops.of(path));
  }
  return same;
}

class Placing {
 public:
  explicit Placing(const PlanSpace& space)
      : space_(space),
        gpus_(space.topology->num_gpus()),
        timetable_(*space.topology, InsertionTimetable::Reading::forwards, space.concurrency),
        bringer_(space.demand.num_chunks() * gpus_, kNobody),
        out_(gpus_) {
    for (std::size_t h = 0; h < space.hops.size(); ++h)
      out_[space.hops[h].src.index()].push_back(static_cast<int>(h));
    for (std::size_t c = 0; c < space.demand.num_chunks(); ++c)
      bringer(ChunkId{c}, space.demand.origin(ChunkId{c})) = kOrigin;
  }

  bool holds(ChunkId chunk, GpuId gpu) const { return bringer(chunk, gpu) != kNobody; }

  /// Over `kept_hop` if that is in time, else on the soonest path. False where there is none.
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
    if (best != kNoHop && arrives_us <= in_time_us) {
      take(chunk, best);
      return true;
    }
    for (const int h : space_.into[to.index()]) {
      if (h != kept_hop) look(h);
    }
    std::vector<int> path;
    if (best == kNoHop || looks_ < kMostLooksAtPaths) path = path_to(chunk, to, arrives_us);
    if (path.empty() && best != kNoHop) path = {best};
    for (const int h : path) take(chunk, h);
    return !path.empty();
  }

  TransferPlan done() {
    drop_useless(plan_, space_);
    settle(plan_, space_);
    return std::move(plan_);
  }

 private:
  static constexpr int kNobody = -2;
  static constexpr int kOrigin = -1;

  /// The soonest path of hops from a GPU that holds the chunk, if it arrives before the time given:
  /// Dijkstra's algorithm over arrivals, as links are taken now. Empty where there is none.
  std::vector<int> path_to(ChunkId chunk, GpuId to, double before_us) {
    struct Reached {
      double at_us;
      int hop;
      bool is_final;
    };
    std::vector<Reached> reached(gpus_, {kInfinity, kNoHop, false});
    if (std::isfinite(before_us)) reached[to.index()].at_us = before_us - time_slack_us(before_us);
    for (std::size_t g = 0; g < gpus_; ++g) {
      if (holds(chunk, GpuId{g})) reached[g].at_us = held_from_us(chunk, GpuId{g});
    }
    const double bytes = space_.demand.bytes(chunk);
    for (;;) {
      const auto next = std::ranges::min_element(
          reached, {}, [](const Reached& r) { return r.is_final ? kInfinity : r.at_us; });
      if (next->is_final || !std::isfinite(next->at_us)) return {};
      next->is_final = true;
      const auto from = static_cast<std::size_t>(next - reached.begin());
      if (from == to.index()) break;
      for (const int h : out_[from]) {
        const Hop& hop = space_.hops[index(h)];
        Reached& end = reached[hop.dst.index()];
        if (end.is_final || next->at_us + hop.duration_us(bytes) >= std::min(end.at_us, before_us)) continue;
        ++looks_;
        const double arrival_us =
            arrival_at_us(hop, bytes, timetable_.earliest_start(hop, bytes, next->at_us));
        if (arrival_us < end.at_us) end = {arrival_us, h, false};
      }
    }
    std::vector<int> path;
    for (std::size_t g = to.index(); reached[g].hop != kNoHop;
         g = space_.hops[index(path.back())].src.index())
      path.push_back(reached[g].hop);
    std::ranges::reverse(path);
    return path;
  }

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
    return arrival_at_us(space_.hops[index(h)], space_.demand.bytes(chunk), start_over(chunk, h));
  }
  double arrival_at_us(const Hop& hop, double bytes, double start_us) const {
    return std::isfinite(start_us) ? start_us + timetable_.duration_us(hop, bytes, start_us) : start_us;
  }
  void take(ChunkId chunk, int h) {
    const Hop& hop = space_.hops[index(h)];
    const double start_us = start_over(chunk, h);
    timetable_.reserve(hop, space_.demand.bytes(chunk), start_us);
    plan_.transfers.push_back({chunk, h, std::max(bringer(chunk, hop.src), -1), -1, start_us});
    bringer(chunk, hop.dst) = static_cast<int>(plan_.transfers.size()) - 1;
  }

  const PlanSpace& space_;
  std::size_t gpus_;
  InsertionTimetable timetable_;
  std::vector<int> bringer_;           ///< per (chunk, GPU): the transfer that brings it
  std::vector<std::vector<int>> out_;  ///< hops, per GPU
  double looks_ = 0;                   ///< at hops of paths
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
    HopsByPath hops(space);
    for (const Hop& hop : table.hops()) hops.add(hop);
  }
  const std::vector<double> due = due_times(*plan, latest_starts(*plan, before));

  Placing placing(space);
  for (std::size_t i = 0; i < plan->transfers.size(); ++i) {
    const PlannedTransfer& t = plan->transfers[i];
    const GpuId to = before.hop(t).dst;
    if (placing.holds(t.chunk, to)) continue;
    if (placing.place(t.chunk, to, same[index(t.hop)], due[i] * due_scale)) continue;
    throw Error(ExitCode::unavailable,
                fmt::format("chunk {} finds no path to GPU {} on '{}' without the links that are gone",
                            t.chunk.value, to.value, space.topology->name()));
  }
  return placing.done();
}

}  // namespace rondo
