#include "rondo/local_search/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/local_search/justification.hpp"

namespace rondo {
namespace {

/// A neighbour that is later than the incumbent by more than this share of the gap in us is not justified.
constexpr double kHopeless = 0.5;

/// Limits on the hops that all free transfers together may compare, in all and per transfer. A comparison
/// costs about as much as placing a transfer, and a GPU behind switches has a hop from every other GPU.
constexpr double kMostLooks = 2e6;
constexpr double kLooksPerTransfer = 4;

/// 2^x with x uniform in [least, most).
double power_of_two(Random& random, double least, double most) {
  return std::exp2(least + (most - least) * random.unit());
}

bool one_in(Random& random, std::size_t n) {
  return random.below(n) == 0;
}

/// A random GPU whose last arrival is within `within_us` of the finish time.
GpuId late_gpu(const TransferPlan& plan, const PlanSpace& space, double within_us, Random& random) {
  std::vector<char> late(space.topology->num_gpus(), 0);
  for (const PlannedTransfer& t : plan.transfers) {
    if (space.arrival_us(t) >= plan.quality.finish_us - within_us) late[space.hop(t).dst.index()] = 1;
  }
  const auto count = static_cast<std::size_t>(std::ranges::count(late, 1));
  std::size_t skip = random.below(count);
  std::size_t g = 0;
  while (late[g] == 0 || skip-- > 0) ++g;
  return GpuId{g};
}

/// The random choice of the transfers that are freed.
class Selection {
 public:
  Selection(const SurveyedPlan& incumbent, const PlanSpace& space, double chunk_us, Random& random)
      : incumbent_(incumbent), space_(space), topology_(*space.topology) {
    const double finish = incumbent.plan.quality.finish_us;
    const double width = one_in(random, 6) ? 2 * finish : finish * power_of_two(random, -6, 0);
    from_us_ = random.unit() * (finish + width) - width;
    until_us_ = from_us_ + width;
    kind_ = static_cast<Kind>(random.below(kKinds));
    slack_us_ = chunk_us * power_of_two(random, -3, 3);
    gpu_ = late_gpu(incumbent.plan, space, chunk_us, random);
    chunk_classes_ = 2 + random.below(6);
    salt_ = random.next();
  }

  bool operator()(std::size_t i) const {
    const PlannedTransfer& t = incumbent_.plan.transfers[i];
    if (t.start_us < from_us_ || t.start_us > until_us_) return false;
    const Hop& hop = space_.hop(t);
    switch (kind_) {
      case Kind::all:
        return true;
      case Kind::critical:
        return incumbent_.latest_start_us[i] - t.start_us <= slack_us_;
      case Kind::gpu:
        return hop.src == gpu_ || hop.dst == gpu_;
      case Kind::chassis:
        return same_chassis(hop.src) || same_chassis(hop.dst);
      case Kind::chunks:
        return mix_bits(t.chunk.index() + salt_) % chunk_classes_ == 0;
    }
    return false;
  }

 private:
  enum class Kind : std::uint8_t { all, critical, gpu, chassis, chunks };
  static constexpr std::size_t kKinds = 5;

  bool same_chassis(GpuId g) const {
    const auto& chassis = topology_.node(topology_.node_of(gpu_)).chassis;
    return g == gpu_ || (chassis && topology_.node(topology_.node_of(g)).chassis == chassis);
  }

  const SurveyedPlan& incumbent_;
  const PlanSpace& space_;
  const Topology& topology_;
  double from_us_, until_us_;
  Kind kind_;
  double slack_us_;
  GpuId gpu_;
  std::size_t chunk_classes_;
  std::uint64_t salt_;
};

/// Changes the hops of given transfers, without moving them in time: rewire() takes a hop from another GPU
/// that holds the chunk, change_heads() reverses a hop.
class Rewiring {
 public:
  Rewiring(const SurveyedPlan& incumbent, const PlanSpace& space, double exponent)
      : incumbent_(incumbent),
        space_(space),
        gpus_(space.topology->num_gpus()),
        exponent_(exponent),
        plan_(incumbent.plan),
        bringer_(space.demand.num_chunks() * gpus_, -1) {
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
      const Hop& hop = space_.hops[index(h)];
      const int bringer = bringer_[t.chunk.index() * gpus_ + hop.src.index()];
      if (bringer < 0 || depends(bringer, static_cast<int>(i))) continue;
      const double price = price_of(t, h);
      const double arrival =
          space_.arrival_us(incumbent_.plan.transfers[index(bringer)]) + hop.duration_us(space_.bytes(t));
      if (price >= least || arrival > incumbent_.due_us[i]) continue;
      least = price;
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

  double price_of(const PlannedTransfer& t, int h) const {
    double sum = 0;
    for (const HopLink& part : space_.hops[index(h)].links)
      sum += std::pow(incumbent_.load[part.link.index()], exponent_) * part.load_us(space_.bytes(t));
    return sum;
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
  double exponent_;
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

TransferPlan neighbour_of(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                          std::uint64_t seed) {
  Random random(mix_bits(seed));
  const auto& transfers = incumbent.plan.transfers;
  const double finish = incumbent.plan.quality.finish_us;
  const auto finished = [&](TransferPlan plan) {
    if (plan.quality.finish_us - finish > kHopeless * (finish - bound_us)) return plan;
    return justified(plan, space);
  };
  double chunk_us = 0;  // mean duration of a transfer
  for (const PlannedTransfer& t : transfers)
    chunk_us += space.duration_us(t) / static_cast<double>(transfers.size());

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
  if (in_time) freedom.due_us = incumbent.due_us;
  if (dearness > 0) {
    for (const double load : incumbent.load) freedom.price.push_back(dearness * std::pow(load, exponent));
  }
  return finished(placed_forward(incumbent.plan, space, key, freedom));
}

}  // namespace rondo
