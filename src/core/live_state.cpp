#include "rondo/core/live_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/time_slack.hpp"

namespace rondo {
namespace {

void check_failing(const ProvenSchedule& running, double at_us) {
  if (!(at_us >= 0) || at_us >= running.schedule.finish_us) {
    throw Error(ExitCode::bad_data,
                fmt::format("the failure is at {} us, but the schedule runs from 0 to {} us; name a time "
                            "before its end",
                            at_us, running.schedule.finish_us));
  }
  const Topology& topology = running.topology;
  if (topology.has_bandwidth_steps()) {
    throw Error(ExitCode::unavailable,
                fmt::format("links of '{}' have bandwidth_steps, and a repair is for links that change at "
                            "the failure alone; use rondo solve --from on the fabric that is left",
                            topology.name()));
  }
  if (topology.has_adding_switches() && running.demand.has_several_sources()) {
    throw Error(ExitCode::unavailable,
                fmt::format("switches of '{}' add ('reduce'), and a repair does not know what of a sum they "
                            "have taken in; use rondo solve on the fabric that is left",
                            topology.name()));
  }
}

/// Finds out which of the begun transfers land.
class BegunTransfers {
 public:
  BegunTransfers(const ProvenSchedule& running, double at_us, std::span<const LinkFailure> failures)
      : sends_(running.schedule.sends),
        transfers_(transfers_of(running.topology, running.demand, sends_)),
        at_us_(at_us),
        factor_(running.topology.num_links(), 1.0) {
    for (const LinkFailure& failure : failures) factor_[failure.link.index()] = failure.factor;
  }

  const std::vector<Delivery>& deliveries() const { return transfers_.deliveries; }
  bool has_begun(const Delivery& d) const { return d.start_us < at_us_ - time_slack_us(at_us_); }

  bool is_lost(const Delivery& d) const {
    const double by_us = at_us_ + time_slack_us(at_us_);
    for (int s = d.last_send; s >= 0; s = transfers_.continued[index(s)]) {
      const Send& send = sends_[index(s)];
      const double factor = factor_[send.link.index()];
      if (factor == 0 ? send.arrival_us > by_us : factor < 1 && send.end_us > by_us) return true;
    }
    return false;
  }

  std::vector<LinkId> path_of(const Delivery& d) const {
    std::vector<LinkId> path;
    for (int s = d.last_send; s >= 0; s = transfers_.continued[index(s)])
      path.push_back(sends_[index(s)].link);
    std::ranges::reverse(path);
    return path;
  }

  void mark(const Delivery& d, std::vector<char>& happens) const {
    for (int s = d.last_send; s >= 0; s = transfers_.continued[index(s)]) happens[index(s)] = 1;
  }

 private:
  std::span<const Send> sends_;
  Transfers transfers_;
  double at_us_;
  std::vector<double> factor_;  ///< per link
};

/// What the GPUs have of one chunk, by GPU.
using Holders = std::map<GpuId, LiveHolder>;

Holders at_first(const Contribution& c) {
  Holders holders;
  const auto sources = c.all_sources();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    LiveHolder holder{sources[i], c.source_ready_us.empty() ? c.ready_us : c.source_ready_us[i]};
    if (c.reduce) holder.sources = {sources[i]};
    holders[sources[i]] = holder;
  }
  for (const HeldSum& held : c.held) {
    if (held.sources.empty()) {
      holders.erase(held.gpu);
    } else {
      holders[held.gpu] = {held.gpu, 0, held.sources};
    }
  }
  return holders;
}

/// Lets the deliveries of a sum arrive, in the order of their arrivals.
void add_up(Holders& holders, const std::vector<Delivery>& deliveries, std::vector<int> landing) {
  // Of arrivals at one time copies come first (FORMATS.md 3, rule 9).
  std::ranges::sort(landing, {}, [&](int d) {
    const Delivery& delivery = deliveries[index(d)];
    return std::tuple(delivery.arrival_us, delivery.op == SendOp::reduce, d);
  });
  const Holders first = holders;
  std::map<int, std::vector<GpuId>> after;  // per delivery: what its destination then has
  for (const int d : landing) {
    const Delivery& delivery = deliveries[index(d)];
    const std::vector<GpuId>& carried =
        delivery.cause >= 0 ? after.at(delivery.cause) : first.at(delivery.src).sources;
    LiveHolder& holder = holders[delivery.dst];
    std::vector<GpuId> all;
    std::ranges::set_union(holder.sources, carried, std::back_inserter(all));
    holder = {delivery.dst, delivery.arrival_us, all};
    after[d] = std::move(all);
  }
}

}  // namespace

LiveState live_state(const ProvenSchedule& running, double at_us, std::span<const LinkFailure> failures) {
  check_failing(running, at_us);
  const BegunTransfers begun(running, at_us, failures);
  const std::vector<Delivery>& deliveries = begun.deliveries();
  LiveState state{.at_us = at_us, .landed_us = at_us};
  std::vector<char> happens(running.schedule.sends.size(), 0);
  std::vector<std::vector<int>> landed(running.demand.num_chunks());
  const std::vector<int> held = sources_held(running.demand, deliveries);
  for (std::size_t d = 0; d < deliveries.size(); ++d) {
    const Delivery& delivery = deliveries[d];
    const bool has_begun = begun.has_begun(delivery);
    if (!has_begun || begun.is_lost(delivery)) {
      const Contribution& c = running.demand.contribution(delivery.chunk);
      state.left.push_back({delivery.chunk, delivery.src, delivery.dst, begun.path_of(delivery),
                            delivery.start_us, delivery.arrival_us, delivery.op, has_begun,
                            !c.reduce || held[d] == std::ssize(c.sources)});
      if (has_begun) ++state.lost;
      continue;
    }
    begun.mark(delivery, happens);
    landed[delivery.chunk.index()].push_back(static_cast<int>(d));
    if (delivery.arrival_us > at_us + time_slack_us(at_us)) ++state.in_flight;
    state.landed_us = std::max(state.landed_us, delivery.arrival_us);
  }
  for (std::size_t s = 0; s < happens.size(); ++s) {
    if (happens[s] != 0) state.history.push_back(running.schedule.sends[s]);
  }

  for (std::size_t i = 0; i < running.demand.num_chunks(); ++i) {
    const Contribution& c = running.demand.contribution(ChunkId{i});
    Holders holders = at_first(c);
    if (c.reduce) {
      add_up(holders, deliveries, std::move(landed[i]));
    } else {
      for (const int d : landed[i]) {
        const Delivery& delivery = deliveries[index(d)];
        const auto [at, is_new] =
            holders.try_emplace(delivery.dst, LiveHolder{delivery.dst, delivery.arrival_us});
        if (!is_new) at->second.from_us = std::min(at->second.from_us, delivery.arrival_us);
      }
    }
    auto& list = state.holders.emplace_back();
    for (auto& [gpu, holder] : holders) list.push_back(std::move(holder));
  }
  return state;
}

std::optional<RestDemand> rest_demand(const Demand& running, const LiveState& state) {
  std::vector<Contribution> rest;
  std::vector<ChunkId> chunks;
  double bytes = 0;
  for (std::size_t i = 0; i < running.num_chunks(); ++i) {
    const Contribution& c = running.contribution(ChunkId{i});
    const std::vector<LiveHolder>& holders = state.holders[i];
    Contribution left{.origin = c.origin, .bytes = running.bytes(ChunkId{i}), .reduce = c.reduce};
    for (const GpuId g : c.destinations) {
      const auto at = std::ranges::find(holders, g, &LiveHolder::gpu);
      const bool has_all = at != holders.end() && (!c.reduce || at->sources.size() == c.all_sources().size());
      if (!has_all) left.destinations.push_back(g);
    }
    if (left.destinations.empty()) continue;
    if (c.reduce) {
      left.sources = c.sources;
      for (const LiveHolder& holder : holders) {
        const bool as_ever = holder.sources.size() == 1 && holder.sources.front() == holder.gpu;
        if (!as_ever) left.held.push_back({holder.gpu, holder.sources});
      }
      for (const GpuId g : c.sources) {
        if (std::ranges::find(holders, g, &LiveHolder::gpu) == holders.end()) left.held.push_back({g, {}});
      }
    } else {
      for (const LiveHolder& holder : holders) {
        left.sources.push_back(holder.gpu);
        left.source_ready_us.push_back(std::max(0.0, holder.from_us - state.at_us));
      }
      left.origin = left.sources.front();
      if (left.sources.size() == 1) {
        left.ready_us = left.source_ready_us.front();
        left.sources.clear();
        left.source_ready_us.clear();
      }
    }
    bytes += left.bytes;
    rest.push_back(std::move(left));
    chunks.emplace_back(i);
  }
  if (rest.empty()) return std::nullopt;
  return RestDemand{Demand(Collective::custom, bytes, running.num_gpus(), std::move(rest), 1),
                    std::move(chunks)};
}

}  // namespace rondo
