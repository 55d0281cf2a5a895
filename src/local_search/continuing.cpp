#include "rondo/local_search/continuing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "hops_by_path.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/local_search/transfer_plan.hpp"
#include "rondo/model/linear_model.hpp"
#include "switch_copies.hpp"

namespace rondo {
namespace {

/// Hops that the paths of all late copies together may compare; afterwards they keep to their plan.
constexpr double kMostLooksAtLate = 4e6;

class Continuing {
 public:
  Continuing(const RestToDo& rest, const ContinuingRules& rules)
      : rest_(rest),
        rules_(rules),
        demand_(rest.demand.demand),
        gpus_(rest.topology.num_gpus()),
        space_(make_plan_space(rest.topology, demand_, rest.concurrency)),
        by_path_(space_),
        timetable_(rest.topology, InsertionTimetable::Reading::forwards, rest.concurrency),
        from_us_(demand_.num_chunks() * gpus_, kInfinity),
        sets_(demand_.num_chunks()),
        is_broken_(demand_.num_chunks(), 0) {
    if (space_.hops.empty()) {
      // A plan space of many GPUs has no hops of its own.
      const HopTable table(rest.topology);
      for (const Hop& hop : table.hops()) by_path_.add(hop);
    }
    for (const Send& send : rest.on_links) timetable_.occupy(send);
    find_holders();
    find_left();
  }

  Schedule run() {
    if (rules_.broken_first) {
      for (std::size_t c = 0; c < is_broken_.size(); ++c) add_up_anew(ChunkId{c});
    }
    for (const Left& left : left_) {
      const bool is_sum = demand_.contribution(left.chunk).reduce;
      // A copy of all of a sum may take another path, as a datum may.
      const bool is_whole = !is_sum || (std::isfinite(rules_.due_scale) && left.plan->op == SendOp::copy &&
                                        has_all(left.chunk, left.plan->src));
      if (is_sum && is_broken_[left.chunk.index()] != 0) {
        add_up_anew(left.chunk);
      } else if (is_whole) {
        copy(left.chunk, left.plan->dst, left.hop, left.plan->arrival_us - rest_.state.at_us);
      } else {
        go_on(left);
      }
    }
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
      for (const GpuId g : demand_.destinations(ChunkId{c})) copy(ChunkId{c}, g, kNoHop, kInfinity);
    }
    Schedule schedule{std::move(sends_)};
    number_transfers(rest_.topology, demand_, schedule.sends);
    schedule.sends = pruned(rest_.topology, demand_, schedule.sends);
    canonicalise(schedule);
    return schedule;
  }

 private:
  static constexpr int kNoHop = -1;
  using Sources = std::vector<GpuId>;  ///< ascending

  struct Left {
    ChunkId chunk;  ///< of the rest
    int hop;        ///< kNoHop: a link is gone
    const DeliveryLeft* plan;
  };

  void find_holders() {
    for (std::size_t i = 0; i < demand_.num_chunks(); ++i) {
      const ChunkId c{i};
      const bool reduce = demand_.contribution(c).reduce;
      if (reduce) sets_[i].resize(gpus_);
      for (const LiveHolder& holder : rest_.state.holders[rest_.demand.running[i].index()]) {
        from_us(c, holder.gpu) = std::max(0.0, holder.from_us - rest_.state.at_us);
        if (reduce) set(c, holder.gpu) = holder.sources;
      }
    }
  }

  void find_left() {
    std::vector<int> rest_of(rest_.state.holders.size(), -1);  // per running chunk
    for (std::size_t i = 0; i < rest_.demand.running.size(); ++i)
      rest_of[rest_.demand.running[i].index()] = static_cast<int>(i);
    for (const DeliveryLeft& plan : rest_.state.left) {
      const int chunk = rest_of[plan.chunk.index()];
      if (chunk < 0) continue;
      std::vector<LinkId> path = plan.path;
      for (LinkId& link : path) link = rest_.links[link.index()];
      const bool is_whole = std::ranges::all_of(path, &LinkId::valid);
      left_.push_back({ChunkId{chunk}, is_whole ? by_path_.of(path) : kNoHop, &plan});
      if (!is_whole || plan.is_lost) is_broken_[index(chunk)] = 1;
    }
    out_.resize(gpus_);
    for (std::size_t h = 0; h < space_.hops.size(); ++h)
      out_[space_.hops[h].src.index()].push_back(static_cast<int>(h));
    if (rules_.copying && !rest_.topology.has_message_costs()) copies_.emplace(space_);
  }

  double& from_us(ChunkId c, GpuId g) { return from_us_[c.index() * gpus_ + g.index()]; }
  Sources& set(ChunkId c, GpuId g) { return sets_[c.index()][g.index()]; }
  const Hop& hop(int h) const { return space_.hops[index(h)]; }

  /// Of a sum: all of it; of a datum: the datum.
  bool has_all(ChunkId c, GpuId g) {
    const Contribution& part = demand_.contribution(c);
    return std::isfinite(from_us(c, g)) && (!part.reduce || set(c, g).size() == part.sources.size());
  }

  double arrival_over(ChunkId c, int h, double not_before_us) const {
    const double bytes = demand_.bytes(c);
    const double start_us = timetable_.earliest_start(hop(h), bytes, not_before_us);
    return std::isfinite(start_us) ? start_us + hop(h).duration_us(bytes) : start_us;
  }

  void send(ChunkId c, int h, SendOp op, double not_before_us = 0) {
    const double bytes = demand_.bytes(c);
    const GpuId src = hop(h).src;
    const GpuId dst = hop(h).dst;
    const double start_us =
        timetable_.earliest_start(hop(h), bytes, std::max(from_us(c, src), not_before_us));
    timetable_.reserve(hop(h), bytes, start_us);
    append_sends(rest_.topology, hop(h), c, bytes, start_us, sends_);
    sends_.back().op = op;
    if (copies_ && has_all(c, src)) copies_->begin(c, h, start_us);
    arrives(c, dst, start_us + hop(h).duration_us(bytes), src);
  }

  void arrives(ChunkId c, GpuId dst, double arrival_us, GpuId src) {
    if (demand_.contribution(c).reduce) {
      Sources all;
      std::ranges::set_union(set(c, dst), set(c, src), std::back_inserter(all));
      from_us(c, dst) = std::isfinite(from_us(c, dst)) ? std::max(from_us(c, dst), arrival_us) : arrival_us;
      set(c, dst) = std::move(all);
    } else {
      from_us(c, dst) = arrival_us;
    }
  }

  /// To a GPU that has not all of it, over the hop where its source has all of it in time; else on the
  /// soonest path from any that has.
  void copy(ChunkId c, GpuId to, int kept, double planned_us) {
    if (has_all(c, to)) return;
    const SwitchCopies::Branch branch =
        copies_ ? copies_->soonest(c, to, timetable_) : SwitchCopies::Branch{};
    const auto take_branch = [&] {
      copies_->add(c, branch, timetable_, sends_);
      arrives(c, to, branch.arrival_us, hop(branch.hop).src);
    };
    if (kept != kNoHop && has_all(c, hop(kept).src)) {
      if (branch.hop >= 0 && branch.arrival_us <= arrival_over(c, kept, from_us(c, hop(kept).src)))
        return take_branch();
      const bool may_look = std::isfinite(rules_.due_scale) && looks_ < kMostLooksAtLate;
      if (!may_look || arrival_over(c, kept, from_us(c, hop(kept).src)) <= planned_us * rules_.due_scale)
        return send(c, kept, SendOp::copy);
    }
    std::vector<GpuId> holders;
    for (std::size_t g = 0; g < gpus_; ++g) {
      if (has_all(c, GpuId{g})) holders.emplace_back(g);
    }
    const auto path = soonest_path(
        c, holders, [&](GpuId g) { return g == to; }, [](GpuId) { return true; });
    if (branch.hop >= 0 && (path.empty() || branch.arrival_us <= reached_us_)) return take_branch();
    if (path.empty()) refuse(c, to);
    for (const int h : path) send(c, h, SendOp::copy);
  }

  /// Dijkstra's algorithm over arrivals, as links are taken now, from GPUs that hold the chunk to the first
  /// that is an end, over GPUs that may pass it on. Empty where there is none.
  std::vector<int> soonest_path(ChunkId c, const std::vector<GpuId>& from,
                                const std::function<bool(GpuId)>& is_end,
                                const std::function<bool(GpuId)>& may_relay) {
    struct Reached {
      double at_us = kInfinity;
      int hop = kNoHop;
      bool is_final = false;
    };
    std::vector<Reached> reached(gpus_);
    for (const GpuId g : from) reached[g.index()].at_us = from_us(c, g);
    const double bytes = demand_.bytes(c);
    double end_us = kInfinity;  // of the soonest end so far
    for (;;) {
      const auto next = std::ranges::min_element(
          reached, {}, [](const Reached& r) { return r.is_final ? kInfinity : r.at_us; });
      if (next->is_final || !std::isfinite(next->at_us)) return {};
      next->is_final = true;
      const GpuId at(static_cast<std::size_t>(next - reached.begin()));
      if (is_end(at) && next->hop != kNoHop) {
        reached_us_ = next->at_us;
        return path_back(reached, at);
      }
      if (next->hop != kNoHop && !may_relay(at)) continue;
      for (const int h : out_[at.index()]) {
        const GpuId to = hop(h).dst;
        Reached& end = reached[to.index()];
        if (end.is_final || next->at_us + hop(h).duration_us(bytes) >= std::min(end.at_us, end_us)) continue;
        if (!is_end(to) && !may_relay(to)) continue;
        ++looks_;
        const double arrival_us = arrival_over(c, h, next->at_us);
        if (arrival_us >= end.at_us) continue;
        end.at_us = arrival_us;
        end.hop = h;
        if (is_end(to)) end_us = std::min(end_us, arrival_us);
      }
    }
  }

  std::vector<int> path_back(const auto& reached, GpuId to) const {
    std::vector<int> path;
    for (GpuId g = to; reached[g.index()].hop != kNoHop; g = hop(path.back()).src)
      path.push_back(reached[g.index()].hop);
    std::ranges::reverse(path);
    return path;
  }

  /// A delivery of a sum of which nothing is lost.
  void go_on(const Left& left) {
    // Not before its planned start: what it carries is what its source then had.
    const double planned_us = left.plan->start_us - rest_.state.at_us;
    send(left.chunk, left.hop, left.plan->op, planned_us);
  }

  void add_up_anew(ChunkId c) {
    if (is_broken_[c.index()] != 1 || !demand_.contribution(c).reduce) return;
    is_broken_[c.index()] = 2;  // only once
    const bool is_somewhere = [&] {
      for (std::size_t g = 0; g < gpus_; ++g) {
        if (has_all(c, GpuId{g})) return true;
      }
      return false;
    }();
    if (!is_somewhere) gather(c);
    // In the order in which the plan would have brought it.
    for (const Left& left : left_) {
      if (left.chunk != c || !left.plan->completes) continue;
      const auto& wanting = demand_.destinations(c);
      if (std::ranges::find(wanting, left.plan->dst) != wanting.end())
        copy(c, left.plan->dst, left.hop, kInfinity);
    }
    for (const GpuId g : demand_.destinations(c)) copy(c, g, kNoHop, kInfinity);
  }

  /// GPUs whose sets make up the sum, each source in one of them.
  std::vector<GpuId> parts_of(ChunkId c, GpuId wanting) {
    std::vector<GpuId> by_size;
    for (std::size_t g = 0; g < gpus_; ++g) {
      if (!set(c, GpuId{g}).empty()) by_size.emplace_back(g);
    }
    std::ranges::stable_sort(by_size, std::ranges::greater{},
                             [&](GpuId g) { return std::pair(set(c, g).size(), g == wanting); });
    std::vector<GpuId> parts;
    Sources covered;
    for (const GpuId g : by_size) {
      if (shares_some(covered, set(c, g))) continue;
      Sources all;
      std::ranges::set_union(covered, set(c, g), std::back_inserter(all));
      covered = std::move(all);
      parts.push_back(g);
    }
    if (covered.size() == demand_.contribution(c).sources.size()) return parts;
    throw Error(
        ExitCode::unavailable,
        fmt::format("chunk {} of the running schedule: the partial sums that GPUs have overlap, and no "
                    "choice of them adds up to the whole; begin the collective again on the fabric "
                    "that is left",
                    rest_.demand.running[c.index()].value));
  }

  static bool shares_some(const Sources& a, const Sources& b) {
    return std::ranges::any_of(b, [&](GpuId g) { return std::ranges::binary_search(a, g); });
  }

  /// Where the plan had it complete; for one GPU alone that GPU.
  GpuId root_of(ChunkId c) const {
    if (demand_.destinations(c).size() == 1) return demand_.destinations(c).front();
    for (const Left& left : left_) {
      if (left.chunk == c && left.plan->completes) return left.plan->dst;
    }
    return demand_.destinations(c).front();
  }

  /// Moves the parts together until one GPU has them all, the farthest from where the plan had it first.
  void gather(ChunkId c) {
    const GpuId wanting = root_of(c);
    std::vector<GpuId> parts = parts_of(c, wanting);
    std::vector<char> is_part(gpus_, 0);
    for (const GpuId g : parts) is_part[g.index()] = 1;
    std::vector<double> near = distances_to(wanting, c, is_part);
    const auto distance = [&](GpuId g) { return near[g.index()]; };
    while (parts.size() > 1) {
      std::ranges::stable_sort(parts, {}, distance);
      const GpuId from = parts.back();
      const auto is_nearer = [&](GpuId g) { return is_part[g.index()] != 0 && distance(g) < distance(from); };
      const auto path = soonest_path(c, {from}, is_nearer, taken_over_by(c, set(c, from)));
      is_part[from.index()] = 0;
      parts.pop_back();
      if (!path.empty()) {
        move(c, path, SendOp::reduce);
        continue;
      }
      const auto [other, at] = meet(c, from, parts);
      is_part[other.index()] = 0;
      is_part[at.index()] = 1;
      *std::ranges::find(parts, other) = at;
      near = distances_to(wanting, c, is_part);
    }
  }

  /// GPUs to which the part may be copied: what they have is in it.
  std::function<bool(GpuId)> taken_over_by(ChunkId c, Sources part) {
    return [this, c, part = std::move(part)](GpuId g) { return std::ranges::includes(part, set(c, g)); };
  }

  /// Copies along the path; at its end what comes is copied or added.
  void move(ChunkId c, const std::vector<int>& path, SendOp last) {
    for (const int h : path) {
      const GpuId to = hop(h).dst;
      // What has yet to come there comes first.
      const double there_us = from_us(c, to);
      const double not_before_us = std::isfinite(there_us) ? there_us : 0;
      send(c, h, h == path.back() ? last : SendOp::copy, not_before_us);
    }
  }

  /// Two parts meet where neither is: each is copied over GPUs of which it has all that they have. Returns
  /// the other part and where both are then.
  std::pair<GpuId, GpuId> meet(ChunkId c, GpuId from, const std::vector<GpuId>& parts) {
    std::vector<char> is_tried(gpus_, 0);
    const auto passes = taken_over_by(c, set(c, from));
    for (;;) {
      const auto is_end = [&](GpuId g) { return is_tried[g.index()] == 0 && !passes(g); };
      const auto path = soonest_path(c, {from}, is_end, passes);
      if (path.empty()) refuse(c, parts.front());
      const GpuId at = hop(path.back()).dst;
      is_tried[at.index()] = 1;
      for (const GpuId other : parts) {
        if (!std::ranges::includes(set(c, other), set(c, at))) continue;
        const auto to_meet =
            other == at ? std::vector<int>{}
                        : soonest_path(
                              c, {other}, [&](GpuId g) { return g == at; }, taken_over_by(c, set(c, other)));
        if (other != at && to_meet.empty()) continue;
        move(c, to_meet, SendOp::copy);
        move(c, path, SendOp::reduce);
        return {other, at};
      }
    }
  }

  /// Of every GPU over parts and GPUs that have nothing of the sum, with all links free; infinite where
  /// others are in the way: what they have was added up elsewhere.
  std::vector<double> distances_to(GpuId root, ChunkId c, const std::vector<char>& is_part) {
    const double bytes = demand_.bytes(c);
    std::vector<double> distance(gpus_, kInfinity);
    std::vector<char> is_final(gpus_, 0);
    distance[root.index()] = 0;
    for (;;) {
      std::size_t next = gpus_;
      for (std::size_t g = 0; g < gpus_; ++g) {
        if (is_final[g] == 0 && std::isfinite(distance[g]) && (next == gpus_ || distance[g] < distance[next]))
          next = g;
      }
      if (next == gpus_) return distance;
      is_final[next] = 1;
      for (const int h : space_.into[next]) {
        const GpuId from = hop(h).src;
        if (is_part[from.index()] == 0 && !set(c, from).empty()) continue;
        const double us = distance[next] + hop(h).duration_us(bytes);
        distance[from.index()] = std::min(distance[from.index()], us);
      }
    }
  }

  [[noreturn]] void refuse(ChunkId c, GpuId to) const {
    throw Error(
        ExitCode::unavailable,
        fmt::format("chunk {} of the running schedule finds no path to GPU {} on '{}', the fabric that is "
                    "left",
                    rest_.demand.running[c.index()].value, to.value, rest_.topology.name()));
  }

  const RestToDo& rest_;
  const ContinuingRules& rules_;
  const Demand& demand_;
  std::size_t gpus_;
  PlanSpace space_;
  HopsByPath by_path_;
  InsertionTimetable timetable_;
  std::vector<double> from_us_;             ///< per (chunk, GPU): it has what it has from then on
  std::vector<std::vector<Sources>> sets_;  ///< per chunk that is a sum and GPU
  std::vector<char> is_broken_;             ///< per chunk: 1 something of its plan is lost; 2 added up anew
  std::vector<Left> left_;
  std::vector<std::vector<int>> out_;  ///< hops, per GPU
  double looks_ = 0;                   ///< at hops of paths
  double reached_us_ = 0;              ///< when the last path found is at its end
  std::optional<SwitchCopies> copies_;
  std::vector<Send> sends_;
};

}  // namespace

Schedule continued(const RestToDo& rest, const ContinuingRules& rules) {
  return Continuing(rest, rules).run();
}

}  // namespace rondo
