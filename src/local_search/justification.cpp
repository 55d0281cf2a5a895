#include "rondo/local_search/justification.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "copies.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/local_search/ascending.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

constexpr int kNobody = -2;
constexpr int kOrigin = -1;

/// Transfers that wait for their causes: one linked list for each cause, in order of insertion.
class WaitingList {
 public:
  explicit WaitingList(std::size_t transfers)
      : first_(transfers, kNobody), last_(transfers, kNobody), next_(transfers, kNobody) {}
  void add(int cause, int transfer) {
    int& last = last_[index(cause)];
    (last == kNobody ? first_[index(cause)] : next_[index(last)]) = transfer;
    last = transfer;
  }
  /// kNobody: none.
  int first_of(int cause) const { return first_[index(cause)]; }
  int after(int transfer) const { return next_[index(transfer)]; }

 private:
  std::vector<int> first_, last_, next_;
};

class ForwardPass {
 public:
  ForwardPass(const TransferPlan& plan, const PlanSpace& space, const PlanFreedom& freedom)
      : plan_(plan),
        space_(space),
        freedom_(freedom),
        gpus_(space.topology->num_gpus()),
        trees_(plan, space, freedom.free),
        timetable_(*space.topology, InsertionTimetable::Reading::forwards, space.concurrency) {
    placed_.transfers.reserve(plan.transfers.size());
    arrival_us_.reserve(plan.transfers.size());
    if (freedom.free.empty()) return;
    if (freedom.may_copy) leaving_.resize(space.demand.num_chunks());
    bringer_.assign(space.demand.num_chunks() * gpus_, kNobody);
    for (std::size_t c = 0; c < space.demand.num_chunks(); ++c)
      bringer_[c * gpus_ + space.demand.origin(ChunkId{c}).index()] = kOrigin;
  }

  TransferPlan run(const std::vector<int>& order) {
    std::vector<int> place(order.size(), kNobody);
    TimeCheck check_time(space_);
    for (const int i : order) {
      check_time();
      if (place[index(i)] != kNobody) continue;  // with its original
      PlannedTransfer t = plan_.transfers[index(i)];
      if (t.cause >= 0) t.cause = place[index(t.cause)];
      Path path = path_over_tree(t, trees_.original(i));
      if (!std::isfinite(path.start_us)) return never();
      if (!freedom_.free.empty() && freedom_.free[index(i)] != 0) {
        path = freedom_.due_us.empty() ? soonest(t, path) : cheapest(t, path, freedom_.due_us[index(i)]);
        put(t.chunk, path, path.first_link, place[index(i)]);
        continue;
      }
      const auto original = static_cast<int>(placed_.transfers.size());
      trees_.for_each(trees_.original(i), [&](const CopyTrees::Member& member) {
        path.hop = plan_.transfers[index(member.transfer)].hop;
        path.arrival_us = path.start_us + timetable_.duration_us(space_.hops[index(path.hop)],
                                                                 space_.bytes(t), path.start_us);
        put(t.chunk, path, member.first_link, place[index(member.transfer)]);
        path.copy_of = original;
      });
    }
    if (has_copied_) gather_copies();
    settle(placed_, space_);
    return std::move(placed_);
  }

 private:
  struct Path {
    int hop, cause;
    double start_us, arrival_us;
    int copy_of = -1;
    std::size_t first_link = 0;  ///< from which on it needs its links
  };

  void put(ChunkId chunk, const Path& path, std::size_t first_link, int& place) {
    const Hop& hop = space_.hops[index(path.hop)];
    timetable_.reserve(hop, space_.demand.bytes(chunk), path.start_us, first_link);
    place = static_cast<int>(placed_.transfers.size());
    if (!bringer_.empty()) bringer_[chunk.index() * gpus_ + hop.dst.index()] = place;
    if (!leaving_.empty() && hop.links.size() > 1) leaving_[chunk.index()].push_back(place);
    placed_.transfers.push_back({chunk, path.hop, path.cause, path.copy_of, path.start_us});
    arrival_us_.push_back(path.arrival_us);
  }
  /// As early as all links of its tree allow.
  Path path_over_tree(const PlannedTransfer& t, int original) const {
    if (trees_.is_single(original)) return path_over(t, t.hop, t.cause);
    const double start = trees_.earliest_start(timetable_, original, held_from_us(t.chunk, t.cause));
    return {t.hop, t.cause, start, start};
  }
  /// Puts the copies of transfers that were placed before directly behind them.
  void gather_copies() {
    const auto& all = placed_.transfers;
    std::vector<std::pair<int, int>> order;
    for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(original_of(all, i), static_cast<int>(i));
    std::ranges::sort(order);
    std::vector<int> place(all.size(), kNobody);
    for (std::size_t i = 0; i < order.size(); ++i) place[index(order[i].second)] = static_cast<int>(i);
    std::vector<PlannedTransfer> gathered;
    gathered.reserve(all.size());
    for (const auto& [original, i] : order) {
      PlannedTransfer t = all[index(i)];
      if (t.cause >= 0) t.cause = place[index(t.cause)];
      if (t.copy_of >= 0) t.copy_of = place[index(t.copy_of)];
      gathered.push_back(t);
    }
    placed_.transfers = std::move(gathered);
  }

  /// A link goes down, and stays down, before the plan is through.
  TransferPlan never() const {
    TransferPlan plan = plan_;
    plan.quality = {kInfinity, kInfinity};
    return plan;
  }
  double held_from_us(ChunkId chunk, int bringer) const {
    return bringer >= 0 ? arrival_us_[index(bringer)] : space_.demand.ready_us(chunk);
  }
  Path path_over(const PlannedTransfer& t, int h, int cause) const {
    const Hop& hop = space_.hops[index(h)];
    const double bytes = space_.bytes(t);
    const double start = timetable_.earliest_start(hop, bytes, held_from_us(t.chunk, cause));
    return {h, cause, start, start + timetable_.duration_us(hop, bytes, start)};
  }
  double price_of(const PlannedTransfer& t, int h, std::size_t first_link = 0) const {
    if (freedom_.price.empty()) return 0;
    double sum = 0;
    for (const HopLink& part : std::span(space_.hops[index(h)].links).subspan(first_link))
      sum += freedom_.price[part.link.index()] * part.load_us(space_.bytes(t));
    return sum;
  }
  /// Calls `look(path, price)` for every way on which switches copy the chunk to where t goes.
  template <class Look>
  void for_copies(const PlannedTransfer& t, Look&& look) {
    if (leaving_.empty()) return;
    const double bytes = space_.bytes(t);
    for (const int other : leaving_[t.chunk.index()]) {
      const PlannedTransfer& before = placed_.transfers[index(other)];
      const Hop& taken = space_.hop(before);
      for (const int h : space_.hops_between(taken.src, space_.hop(t).dst)) {
        const Hop& hop = space_.hops[index(h)];
        if (!may_be_copied(*space_.topology, taken, hop)) continue;
        const std::size_t first_link = links_in_common(taken, hop);
        const int original = original_of(placed_.transfers, index(other));
        const double start = before.start_us;
        if (!timetable_.is_free(hop, bytes, start, first_link)) continue;
        if (!enters_anew(t.chunk, hop, first_link, original)) continue;
        look(Path{h, before.cause, start, start + hop.duration_us(bytes), original, first_link},
             price_of(t, h, first_link));
      }
    }
  }
  bool enters_anew(ChunkId chunk, const Hop& hop, std::size_t first_link, int original) const {
    return std::ranges::none_of(leaving_[chunk.index()], [&](int member) {
      return original_of(placed_.transfers, index(member)) == original &&
             enters_again(*space_.topology, hop, first_link, space_.hop(placed_.transfers[index(member)]));
    });
  }
  /// Calls `look(hop, bringer, earliest possible arrival)` for every other hop to the same GPU whose source
  /// holds the chunk, now or later.
  template <class Look>
  void for_other_hops(const PlannedTransfer& t, Look&& look) const {
    for (const int h : space_.into[space_.hop(t).dst.index()]) {
      const Hop& hop = space_.hops[index(h)];
      const int bringer = bringer_[t.chunk.index() * gpus_ + hop.src.index()];
      if (h == t.hop || bringer == kNobody) continue;
      look(h, bringer, held_from_us(t.chunk, bringer) + hop.duration_us(space_.bytes(t)));
    }
  }
  Path soonest(const PlannedTransfer& t, Path best) {
    double least = best.arrival_us + price_of(t, best.hop);
    for_other_hops(t, [&](int h, int bringer, double at_best_us) {
      const double price = price_of(t, h);
      if (at_best_us + price >= least) return;
      const Path path = path_over(t, h, bringer);
      if (path.arrival_us + price >= least - time_slack_us(least)) return;
      least = path.arrival_us + price;
      best = path;
    });
    for_copies(t, [&](const Path& path, double price) {
      if (path.arrival_us + price >= least - time_slack_us(least)) return;
      least = path.arrival_us + price;
      best = path;
    });
    has_copied_ = has_copied_ || best.copy_of >= 0;
    return best;
  }
  Path cheapest(const PlannedTransfer& t, Path best, double due_us) {
    double least = best.arrival_us <= due_us ? price_of(t, best.hop) : kInfinity;
    for_other_hops(t, [&](int h, int bringer, double at_best_us) {
      const double price = price_of(t, h);
      if (at_best_us > std::max(due_us, best.arrival_us) || price >= least * 0.999) return;
      const Path path = path_over(t, h, bringer);
      const bool in_time = path.arrival_us <= due_us;
      if (!in_time && (least < kInfinity || path.arrival_us >= best.arrival_us)) return;
      if (in_time) least = price;
      best = path;
    });
    for_copies(t, [&](const Path& path, double price) {
      const bool in_time = path.arrival_us <= due_us;
      if (in_time ? price >= least * 0.999 : least < kInfinity || path.arrival_us >= best.arrival_us) return;
      if (in_time) least = price;
      best = path;
    });
    has_copied_ = has_copied_ || best.copy_of >= 0;
    return best;
  }

  const TransferPlan& plan_;
  const PlanSpace& space_;
  const PlanFreedom& freedom_;
  std::size_t gpus_;
  CopyTrees trees_;
  InsertionTimetable timetable_;
  TransferPlan placed_;
  bool has_copied_ = false;                ///< what was placed before
  std::vector<std::vector<int>> leaving_;  ///< per chunk: placed transfers over switches
  std::vector<double> arrival_us_;         ///< per placed transfer
  std::vector<int> bringer_;               ///< per (chunk, GPU): the placed transfer that brings it there
};

}  // namespace

std::vector<int> causal_order(const TransferPlan& plan, const std::vector<double>& key) {
  const std::vector<int> order = ascending(key);
  std::vector<char> listed(order.size(), 0);
  WaitingList waiting(order.size());
  std::vector<int> causal;
  causal.reserve(order.size());
  const auto list = [&](auto& self, int i) -> void {
    const int cause = plan.transfers[index(i)].cause;
    if (cause >= 0 && listed[index(cause)] == 0) {
      waiting.add(cause, i);
      return;
    }
    listed[index(i)] = 1;
    causal.push_back(i);
    for (int next = waiting.first_of(i); next != kNobody; next = waiting.after(next)) self(self, next);
  };
  for (const int i : order) list(list, i);
  return causal;
}

TransferPlan placed_forward(const TransferPlan& plan, const PlanSpace& space, const std::vector<double>& key,
                            const PlanFreedom& freedom) {
  return ForwardPass(plan, space, freedom).run(causal_order(plan, key));
}

std::vector<double> latest_starts(const TransferPlan& plan, const PlanSpace& space) {
  const std::size_t n = plan.transfers.size();
  std::vector<double> before_end(n);  // of arrivals, in reversed time
  for (std::size_t i = 0; i < n; ++i)
    before_end[i] = plan.quality.finish_us - space.arrival_us(plan.transfers[i]);
  InsertionTimetable timetable(*space.topology, InsertionTimetable::Reading::backwards, space.concurrency,
                               plan.quality.finish_us);
  std::vector<double> needed_from(n, 0);
  std::vector<double> latest(n);
  const CopyTrees trees(plan, space);
  std::vector<int> left(n, 0);  // per original: of its tree
  for (std::size_t i = 0; i < n; ++i) ++left[index(original_of(plan.transfers, i))];
  TimeCheck check_time(space);
  for (const int i : ascending(before_end)) {
    check_time();
    const PlannedTransfer& t = plan.transfers[index(i)];
    const int original = trees.original(i);
    // A tree is placed once all is placed that any of its branches causes.
    if (--left[index(original)] > 0) continue;
    const double start = trees.place_backwards(timetable, original, needed_from);
    trees.for_each(original, [&](const CopyTrees::Member& member) {
      latest[index(member.transfer)] = plan.quality.finish_us - start;
    });
    if (t.cause >= 0) needed_from[index(t.cause)] = std::max(needed_from[index(t.cause)], start);
  }
  return latest;
}

std::vector<double> due_times(const TransferPlan& plan, const std::vector<double>& latest_start_us) {
  std::vector<double> due(plan.transfers.size(), plan.quality.finish_us);
  for (std::size_t i = 0; i < due.size(); ++i) {
    const int cause = plan.transfers[i].cause;
    if (cause >= 0) due[index(cause)] = std::min(due[index(cause)], latest_start_us[i]);
  }
  return due;
}

TransferPlan justified(const TransferPlan& plan, const PlanSpace& space) {
  if (!std::isfinite(plan.quality.finish_us)) return plan;
  TransferPlan again = placed_forward(plan, space, latest_starts(plan, space));
  return again.quality < plan.quality ? again : plan;
}

std::vector<double> link_loads(const TransferPlan& plan, const PlanSpace& space) {
  std::vector<double> load(space.topology->num_links(), 0);
  LinksOnce links(load.size());
  for (std::size_t n = 0; n < plan.transfers.size(); ++n) {
    const PlannedTransfer& t = plan.transfers[n];
    if (space.hop(t).changes) {
      const HopTiming timing = space.timing(t);
      for (std::size_t i = 0; i < timing.uses.size(); ++i) {
        load[space.hop(t).links[i].link.index()] +=
            (timing.uses[i].end_us - timing.uses[i].start_us) / plan.quality.finish_us;
      }
      continue;
    }
    const int original = original_of(plan.transfers, n);
    for (const HopLink& part : space.hop(t).links) {
      if (links.is_new(original, part.link))
        load[part.link.index()] += part.load_us(space.bytes(t)) / plan.quality.finish_us;
    }
  }
  return load;
}

}  // namespace rondo
