#include "rondo/local_search/neighbours.hpp"

#include <algorithm>
#include <cmath>

#include "copies.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/local_search/justification.hpp"
#include "selection.hpp"

namespace rondo {
namespace {

/// Limits on the hops that all free transfers together may compare, in all and per transfer. A comparison
/// costs about as much as placing a transfer, and a GPU behind switches has a hop from every other GPU.
constexpr double kMostLooks = 2e6;
constexpr double kLooksPerTransfer = 4;

/// Changes the hops of given transfers, without moving them in time: rewire() takes a hop from another GPU
/// that holds the chunk, change_heads() reverses a hop.
class Rewiring {
 public:
  Rewiring(const SurveyedPlan& incumbent, const PlanSpace& space, double exponent)
      : incumbent_(incumbent),
        space_(space),
        gpus_(space.topology->num_gpus()),
        plan_(incumbent.plan),
        bringer_(space.demand.num_chunks() * gpus_, -1) {
    for (const double load : incumbent.load) dearness_.push_back(std::pow(load, exponent));
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
      const PlannedTransfer& t = plan_.transfers[i];
      bringer_[t.chunk.index() * gpus_ + space.hop(t).dst.index()] = static_cast<int>(i);
    }
  }

  void rewire(std::size_t i) {
    PlannedTransfer& t = plan_.transfers[i];
    double least = kMuchCheaper * price_of(t, t.hop);
    const GpuId to = space_.hop(t).dst;
    for (const int h : space_.into[to.index()]) {
      const double price = price_of(t, h);
      if (price >= least) continue;
      const Hop& hop = space_.hops[index(h)];
      const int bringer = bringer_[t.chunk.index() * gpus_ + hop.src.index()];
      if (bringer < 0 || depends(bringer, static_cast<int>(i))) continue;
      const double arrival =
          space_.arrival_us(incumbent_.plan.transfers[index(bringer)]) + hop.duration_us(space_.bytes(t));
      if (arrival > incumbent_.due_us[i]) continue;
      least = price;
      leave_tree(plan_, i);
      t.hop = h;
      t.cause = bringer;
      ++count_;
    }
  }

  /// Transfer i brings a chunk to a GPU that relays it, over a link with more load than another hop into the
  /// next GPUs. One of these GPUs then receives the chunk first, over that other hop, and sends it back to
  /// the first GPU. `key`: the order of placing.
  void change_heads(std::size_t i, std::vector<double>& key) {
    if (next_.empty()) list_next();
    const PlannedTransfer t = plan_.transfers[i];
    const GpuId head = space_.hop(t).dst;
    const double share = space_.bytes(t) * space_.hop(t).us_per_byte / incumbent_.plan.quality.finish_us;
    double least = greatest_load(t.hop) - share;
    int best_next = -1, best_hop = -1, best_back = -1, best_cause = -1;
    for (const int j : next_[i]) {
      const GpuId other = space_.hop(plan_.transfers[index(j)]).dst;
      const int back = hop_between(other, head);
      if (back < 0) continue;
      for (const int h : space_.into[other.index()]) {
        const GpuId from = space_.hops[index(h)].src;
        const double load = greatest_load(h);
        if (from == head || load >= least) continue;
        const bool at_origin = from == space_.demand.origin(t.chunk);
        const int bringer = bringer_[t.chunk.index() * gpus_ + from.index()];
        if (!at_origin && (bringer < 0 || depends(bringer, static_cast<int>(i)))) continue;
        const double held_us = at_origin ? space_.demand.ready_us(t.chunk)
                                         : space_.arrival_us(incumbent_.plan.transfers[index(bringer)]);
        if (held_us > incumbent_.latest_start_us[i]) continue;
        least = load;
        best_next = j;
        best_hop = h;
        best_back = back;
        best_cause = at_origin ? -1 : bringer;
      }
    }
    if (best_next < 0) return;
    const std::size_t j = index(best_next);
    const GpuId other = space_.hop(plan_.transfers[j]).dst;
    add_load(plan_.transfers[i], -1);
    add_load(plan_.transfers[j], -1);
    leave_tree(plan_, i);
    leave_tree(plan_, j);
    plan_.transfers[j].hop = best_hop;
    plan_.transfers[j].cause = best_cause;
    plan_.transfers[i].hop = best_back;
    plan_.transfers[i].cause = best_next;
    add_load(plan_.transfers[i], 1);
    add_load(plan_.transfers[j], 1);
    key[j] = std::min(key[i], key[j]);
    // The other GPUs receive the chunk from the one that now has it first.
    for (const int k : next_[i]) {
      const int hop = k == best_next ? -1 : hop_between(other, space_.hop(plan_.transfers[index(k)]).dst);
      if (hop < 0) continue;
      leave_tree(plan_, index(k));
      plan_.transfers[index(k)].hop = hop;
      plan_.transfers[index(k)].cause = best_next;
    }
    std::vector<int> kept;
    for (const int k : next_[i]) {
      const bool moved = plan_.transfers[index(k)].cause != static_cast<int>(i);
      if (!moved) kept.push_back(k);
      if (moved && k != best_next) next_[j].push_back(k);
    }
    next_[i] = std::move(kept);
    next_[j].push_back(static_cast<int>(i));
    if (t.cause >= 0) std::erase(next_[index(t.cause)], static_cast<int>(i));
    if (best_cause >= 0) next_[index(best_cause)].push_back(best_next);
    ++count_;
  }

  std::size_t count() const { return count_; }
  const TransferPlan& plan() const { return plan_; }

 private:
  static constexpr double kMuchCheaper = 0.5;
  struct Price {
    double bytes = -1;
    double of_hop = 0;
  };

  /// The last one of each hop is kept: most chunks have as many bytes.
  double price_of(const PlannedTransfer& t, int h) {
    if (prices_.empty()) prices_.resize(space_.hops.size());
    Price& price = prices_[index(h)];
    const double bytes = space_.bytes(t);
    if (price.bytes == bytes) return price.of_hop;
    price = {bytes, 0};
    for (const HopLink& part : space_.hops[index(h)].links)
      price.of_hop += dearness_[part.link.index()] * part.load_us(bytes);
    return price.of_hop;
  }
  bool depends(int transfer, int on) const {
    while (transfer >= 0 && transfer != on) transfer = plan_.transfers[index(transfer)].cause;
    return transfer == on;
  }

  double greatest_load(int h) const {
    double greatest = 0;
    for (const HopLink& part : space_.hops[index(h)].links)
      greatest = std::max(greatest, load_[part.link.index()]);
    return greatest;
  }
  void add_load(const PlannedTransfer& t, double sign) {
    for (const HopLink& part : space_.hop(t).links)
      load_[part.link.index()] += sign * part.load_us(space_.bytes(t)) / incumbent_.plan.quality.finish_us;
  }
  /// The hop of greatest bandwidth; -1: none.
  int hop_between(GpuId from, GpuId to) const {
    int best = -1;
    for (const int h : space_.into[to.index()]) {
      const Hop& hop = space_.hops[index(h)];
      if (hop.src == from && (best < 0 || hop.us_per_byte < space_.hops[index(best)].us_per_byte)) best = h;
    }
    return best;
  }
  void list_next() {
    next_.assign(plan_.transfers.size(), {});
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
      const int cause = plan_.transfers[i].cause;
      if (cause >= 0) next_[index(cause)].push_back(static_cast<int>(i));
    }
  }

  const SurveyedPlan& incumbent_;
  const PlanSpace& space_;
  std::size_t gpus_;
  std::vector<double> dearness_;                ///< by link
  std::vector<Price> prices_;                   ///< by hop
  std::vector<double> load_ = incumbent_.load;  ///< after the changes
  std::vector<std::vector<int>> next_;          ///< per transfer, the transfers that it causes
  TransferPlan plan_;
  std::vector<int> bringer_;
  std::size_t count_ = 0;
};

}  // namespace

SurveyedPlan survey(TransferPlan plan, const PlanSpace& space) {
  SurveyedPlan surveyed{std::move(plan), {}, {}, {}};
  surveyed.latest_start_us = latest_starts(surveyed.plan, space);
  surveyed.due_us = due_times(surveyed.plan, surveyed.latest_start_us);
  surveyed.load = link_loads(surveyed.plan, space);
  return surveyed;
}

std::optional<TransferPlan> rearranged(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                       Random& random) {
  const auto& transfers = incumbent.plan.transfers;
  const auto finished = [&](const TransferPlan& plan) {
    return justified_if_near(plan, incumbent, space, bound_us);
  };
  const double chunk_us = mean_duration_us(incumbent.plan, space);
  const Selection selected(incumbent, space, chunk_us, random);
  const double disorder_us = one_in(random, 3) ? 0 : chunk_us * power_of_two(random, -3, 4);
  const double free_share = one_in(random, 5) ? 0 : one_in(random, 3) ? 1 : power_of_two(random, -6, 0);
  const bool in_time = one_in(random, 2);
  const double delay = in_time && one_in(random, 2) ? random.unit() : 0;
  const double exponent = std::round(power_of_two(random, 2, 6));
  const double dearness = !in_time && one_in(random, 2) ? 0 : power_of_two(random, -3, 3);

  std::vector<double> key = incumbent.latest_start_us;
  if (one_in(random, 4)) {
    Rewiring rewiring(incumbent, space, exponent);
    const double share = one_in(random, 2) ? 1 : power_of_two(random, -6, 0);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (selected(i) && random.unit() < share) rewiring.rewire(i);
    }
    return finished(placed_forward(rewiring.plan(), space, key));
  }
  if (one_in(random, 3)) {
    Rewiring rewiring(incumbent, space, exponent);
    const std::size_t most = std::size_t{1} << random.below(6);
    for (std::size_t n = 0; n < 64 * most && rewiring.count() < most; ++n) {
      const std::size_t i = random.below(transfers.size());
      if (selected(i)) rewiring.change_heads(i, key);
    }
    return finished(placed_forward(rewiring.plan(), space, key));
  }
  PlanFreedom freedom;
  freedom.free.assign(transfers.size(), 0);
  double looks = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (selected(i)) looks += static_cast<double>(space.into[space.hop(transfers[i]).dst.index()].size());
  }
  const double most_looks = std::max(kMostLooks, kLooksPerTransfer * static_cast<double>(transfers.size()));
  const double share = std::min(free_share, most_looks / std::max(1.0, looks));
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (!selected(i)) continue;
    key[i] += disorder_us * (random.unit() - 0.5);
    freedom.free[i] = random.unit() < share ? 1 : 0;
    // When it is placed later, more GPUs hold the chunk and can send it.
    if (freedom.free[i] != 0)
      key[i] +=
          delay * (incumbent.due_us[i] - space.duration_us(transfers[i]) - incumbent.latest_start_us[i]);
  }
  freedom.may_copy = space.may_copy() && one_in(random, 2);
  if (in_time) freedom.due_us = incumbent.due_us;
  if (dearness > 0) {
    for (const double load : incumbent.load) freedom.price.push_back(dearness * std::pow(load, exponent));
  }
  return finished(placed_forward(incumbent.plan, space, key, freedom));
}

std::optional<TransferPlan> neighbour_of(const SurveyedPlan& incumbent, const PlanSpace& space,
                                         double bound_us, std::uint64_t seed) {
  static constexpr PlanMove kOfUnicast[] = {reordered, loaded_first, reinserted};
  Random random(mix_bits(seed));
  if (space.may_copy() && one_in(random, 4)) return copied(incumbent, space, bound_us, random);
  if (!space.demand.is_unicast()) return rearranged(incumbent, space, bound_us, random);
  return kOfUnicast[random.below(std::size(kOfUnicast))](incumbent, space, bound_us, random);
}

}  // namespace rondo
