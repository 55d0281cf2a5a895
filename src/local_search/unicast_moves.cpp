#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/neighbours.hpp"
#include "rondo/local_search/relay_fit.hpp"
#include "rondo/model/linear_model.hpp"
#include "selection.hpp"

namespace rondo {
namespace {

/// Limits on the hops that all reinsertions of a move together may compare, in all and per transfer of the
/// plan; chunks left then keep their paths.
constexpr double kMostLooksOfInsertion = 1e6;
constexpr double kLooksOfInsertionPerTransfer = 4;

/// Per transfer the greatest load of a link that its chunk has still to cross, as a part of the greatest of
/// all links.
std::vector<double> loads_ahead(const SurveyedPlan& incumbent, const PlanSpace& space) {
  const auto& transfers = incumbent.plan.transfers;
  const double greatest = *std::ranges::max_element(incumbent.load);
  std::vector<double> ahead(transfers.size(), 0);
  for (std::size_t i = transfers.size(); i-- > 0;) {
    const PlannedTransfer& t = transfers[i];
    for (const HopLink& part : space.hop(t).links)
      ahead[i] = std::max(ahead[i], incumbent.load[part.link.index()] / greatest);
    if (t.cause >= 0) ahead[index(t.cause)] = std::max(ahead[index(t.cause)], ahead[i]);
  }
  return ahead;
}

/// Places all transfers anew; freed chunks take other paths.
class Reinsertion {
 public:
  /// `price`: per link, us of delay that equal a us of its time.
  Reinsertion(const SurveyedPlan& incumbent, const PlanSpace& space, std::vector<double> price)
      : before_(incumbent.plan),
        space_(space),
        timetable_(*space.topology, InsertionTimetable::Reading::forwards, space.concurrency),
        price_(std::move(price)),
        out_(space.topology->num_gpus()),
        reached_(out_.size()),
        looks_left_(std::max(kMostLooksOfInsertion,
                             kLooksOfInsertionPerTransfer * static_cast<double>(before_.transfers.size()))) {
    for (std::size_t h = 0; h < space.hops.size(); ++h)
      out_[space.hops[h].src.index()].push_back(static_cast<int>(h));
  }

  /// `freed`: per chunk. Those of `last` come after all others, in that order.
  std::optional<TransferPlan> run(const std::vector<double>& key, const std::vector<char>& freed,
                                  const std::vector<ChunkId>& last) {
    std::vector<char> waits(freed.size(), 0);
    std::vector<char> is_back(freed.size(), 0);
    for (const ChunkId c : last) waits[c.index()] = 1;
    std::vector<int> place(before_.transfers.size(), -1);
    TimeCheck check_time(space_);
    for (const int i : causal_order(before_, key)) {
      check_time();
      const PlannedTransfer& t = before_.transfers[index(i)];
      if (waits[t.chunk.index()] != 0) continue;
      if (freed[t.chunk.index()] != 0 && looks_left_ > 0 && t.cause < 0)
        is_back[t.chunk.index()] = put_back(t.chunk) ? 1 : 0;
      if (is_back[t.chunk.index()] != 0) continue;
      if (!put(t.chunk, t.hop, t.cause < 0 ? -1 : place[index(t.cause)])) return std::nullopt;
      place[index(i)] = static_cast<int>(placed_.transfers.size()) - 1;
    }
    for (const ChunkId c : last) {
      check_time();
      if (!put_back(c)) return std::nullopt;
    }
    settle(placed_, space_);
    return std::move(placed_);
  }

 private:
  struct Reached {
    double cost_us = kInfinity;  ///< arrival and prices
    double at_us = kInfinity;
    int hop = -1;
  };

  double price_of(const Hop& hop, double bytes) const {
    double sum = 0;
    for (const HopLink& part : hop.links) sum += price_[part.link.index()] * part.load_us(bytes);
    return sum;
  }

  /// After the transfer with this number in the new plan; -1: at the chunk's origin.
  bool put(ChunkId chunk, int h, int cause) {
    const Hop& hop = space_.hops[index(h)];
    const double bytes = space_.demand.bytes(chunk);
    const double held_us = cause < 0 ? space_.demand.ready_us(chunk) : arrival_us_[index(cause)];
    const double start_us = timetable_.earliest_start(hop, bytes, held_us);
    if (!std::isfinite(start_us)) return false;
    timetable_.reserve(hop, bytes, start_us);
    placed_.transfers.push_back({chunk, h, cause, -1, start_us});
    arrival_us_.push_back(start_us + timetable_.duration_us(hop, bytes, start_us));
    return true;
  }

  /// Dijkstra's algorithm over arrivals plus prices, as links are taken now.
  bool put_back(ChunkId chunk) {
    using Entry = std::pair<double, int>;
    const double bytes = space_.demand.bytes(chunk);
    const GpuId origin = space_.demand.origin(chunk);
    const GpuId to = space_.demand.destinations(chunk).front();
    std::ranges::fill(reached_, Reached{});
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    const double ready_us = space_.demand.ready_us(chunk);
    reached_[origin.index()] = {ready_us, ready_us, -1};
    open.emplace(ready_us, origin.value);
    while (!open.empty()) {
      const auto [cost_us, g] = open.top();
      open.pop();
      if (g == to.value) break;
      if (cost_us > reached_[index(g)].cost_us) continue;
      const Reached from = reached_[index(g)];
      for (const int h : out_[index(g)]) {
        const Hop& hop = space_.hops[index(h)];
        Reached& end = reached_[hop.dst.index()];
        const double price_us = from.cost_us - from.at_us + price_of(hop, bytes);
        const double most_us = std::min(end.cost_us, reached_[to.index()].cost_us);
        if (from.at_us + hop.duration_us(bytes) + price_us >= most_us) continue;
        looks_left_ -= 1;
        const double start_us = timetable_.earliest_start(hop, bytes, from.at_us);
        if (!std::isfinite(start_us)) continue;
        const double at_us = start_us + timetable_.duration_us(hop, bytes, start_us);
        if (at_us + price_us >= most_us) continue;
        end = {at_us + price_us, at_us, h};
        open.emplace(end.cost_us, hop.dst.value);
      }
    }
    std::vector<int> path;
    for (GpuId g = to; reached_[g.index()].hop >= 0; g = space_.hops[index(path.back())].src)
      path.push_back(reached_[g.index()].hop);
    if (path.empty()) return false;
    for (std::size_t k = path.size(); k-- > 0;) {
      const bool is_first = k + 1 == path.size();
      if (!put(chunk, path[k], is_first ? -1 : static_cast<int>(placed_.transfers.size()) - 1)) return false;
    }
    return true;
  }

  const TransferPlan& before_;
  const PlanSpace& space_;
  InsertionTimetable timetable_;
  std::vector<double> price_;
  std::vector<std::vector<int>> out_;  ///< hops, per GPU
  std::vector<Reached> reached_;       ///< per GPU
  double looks_left_;
  TransferPlan placed_;
  std::vector<double> arrival_us_;  ///< per placed transfer
};

}  // namespace

std::optional<TransferPlan> reordered(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                      Random& random) {
  const double transfer_us = mean_duration_us(incumbent.plan, space);
  const Selection selected(incumbent, space, transfer_us, random);
  const double disorder_us = transfer_us * power_of_two(random, -3, 4);
  std::vector<double> key = incumbent.latest_start_us;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (selected(i)) key[i] += disorder_us * (random.unit() - 0.5);
  }
  return justified_if_near(placed_forward(incumbent.plan, space, key), incumbent, space, bound_us);
}

std::optional<TransferPlan> loaded_first(const SurveyedPlan& incumbent, const PlanSpace& space,
                                         double bound_us, Random& random) {
  const std::vector<double> ahead = loads_ahead(incumbent, space);
  const double strength_us = incumbent.plan.quality.finish_us * power_of_two(random, -6, 6);
  const double exponent = power_of_two(random, 0, 6);
  std::vector<double> key = incumbent.latest_start_us;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] -= strength_us * std::pow(ahead[i], exponent);
  return justified_if_near(placed_forward(incumbent.plan, space, key), incumbent, space, bound_us);
}

std::optional<TransferPlan> reinserted(const SurveyedPlan& incumbent, const PlanSpace& space, double bound_us,
                                       Random& random) {
  const auto& transfers = incumbent.plan.transfers;
  const Selection selected(incumbent, space, mean_duration_us(incumbent.plan, space), random);
  const double share = power_of_two(random, -8, 0);
  const bool comes_last = one_in(random, 2);
  std::vector<char> freed(space.demand.num_chunks(), 0);
  std::vector<ChunkId> last;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const ChunkId chunk = transfers[i].chunk;
    if (freed[chunk.index()] != 0 || !selected(i) || random.unit() >= share) continue;
    freed[chunk.index()] = 1;
    if (comes_last) last.push_back(chunk);
  }
  if (std::ranges::find(freed, 1) == freed.end()) return std::nullopt;
  random.shuffle(std::span<ChunkId>(last));
  const double dearness = one_in(random, 3) ? 0 : power_of_two(random, -4, 2);
  const double exponent = std::round(power_of_two(random, 2, 6));
  std::vector<double> price;
  for (const double load : incumbent.load) price.push_back(dearness * std::pow(load, exponent));
  Reinsertion reinsertion(incumbent, space, std::move(price));
  std::optional<TransferPlan> plan = reinsertion.run(incumbent.latest_start_us, freed, last);
  if (!plan) return std::nullopt;
  return justified_if_near(*plan, incumbent, space, bound_us);
}

}  // namespace rondo
