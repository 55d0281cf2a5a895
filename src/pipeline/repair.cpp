#include "rondo/pipeline/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "replayed.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/engines/list_rest.hpp"
#include "rondo/local_search/continuing.hpp"
#include "rondo/pipeline/bound.hpp"

namespace rondo {
namespace {

constexpr double kListWork = 1e5;  ///< sends of all list schedules of a repair
/// From so many deliveries on, the first way that ends within kEnoughGap of the bound will do.
constexpr std::size_t kManyLeft = 50'000;
constexpr double kEnoughGap = 0.01;

/// The fabric without the links that are gone, and per link of before the one that takes its place.
struct FabricLeft {
  std::shared_ptr<const Topology> topology;
  std::vector<LinkId> now;
  std::vector<LinkId> before;  ///< per link that is left
};

FabricLeft fabric_left(const Topology& topology, const Failure& failure) {
  std::vector<double> factor(topology.num_links(), 1);
  for (const LinkFailure& link : failure.links) factor[link.link.index()] = link.factor;
  FabricLeft left;
  TopologyData data = topology.data();
  data.links.clear();
  left.now.resize(topology.num_links());
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    if (factor[l] == 0) continue;
    left.now[l] = LinkId(data.links.size());
    left.before.emplace_back(l);
    data.links.push_back(topology.links()[l]);
    scale_bandwidth(data.links.back(), factor[l]);
  }
  for (SharedBandwidth& group : data.shared_bandwidth) {
    for (LinkId& l : group.links) l = left.now[l.index()];
    std::erase_if(group.links, [](LinkId l) { return !l.valid(); });
  }
  std::erase_if(data.shared_bandwidth, [](const SharedBandwidth& group) { return group.links.empty(); });
  data.name += "-damaged";
  left.topology = std::make_shared<const Topology>(std::move(data));
  return left;
}

/// The fabric on which the links fail then.
Topology failing(const Topology& topology, const Failure& failure) {
  TopologyData data = topology.data();
  for (const LinkFailure& failed : failure.links) {
    Link& link = data.links[failed.link.index()];
    link.bandwidth_steps = {{0, link.bandwidth_GBps}, {failure.at_us, link.bandwidth_GBps * failed.factor}};
  }
  data.name += "-failing";
  return Topology(std::move(data));
}

/// What is still on links after the failure, in the time and the links of the rest, with rates.
std::vector<Send> under_way(const ProvenSchedule& running, const LiveState& state, const FabricLeft& left) {
  // All chunks of a transfer on a link are one use of it.
  std::map<std::tuple<std::int32_t, LinkId>, double> bytes_together;
  for (const Send& send : state.history) {
    if (send.transfer != kNoTransfer)
      bytes_together[{send.transfer, send.link}] += running.demand.bytes(send.chunk);
  }
  std::vector<Send> sends;
  for (const Send& send : state.history) {
    const LinkId now = left.now[send.link.index()];
    if (!now.valid() || send.end_us <= state.at_us + time_slack_us(state.at_us)) continue;
    double bytes = running.demand.bytes(send.chunk);
    if (send.transfer != kNoTransfer) {
      // Only the first of them stands for all.
      double& together = bytes_together[{send.transfer, send.link}];
      if (together == 0) continue;
      bytes = std::exchange(together, 0);
    }
    Send use = send;
    use.link = now;
    use.start_us -= state.at_us;
    use.end_us -= state.at_us;
    use.arrival_us -= state.at_us;
    const double bandwidth = left.topology->link(now).bandwidth_GBps;
    // With message costs the least rate is not told by the duration: the link counts as taken.
    if (!use.has_rate() && running.topology.has_message_costs()) use.rate_GBps = bandwidth;
    if (!use.has_rate()) use.rate_GBps = transmission_us(bytes, 1) / (send.end_us - send.start_us);
    if (use.rate_GBps > bandwidth * (1 - 1e-6)) use.rate_GBps = bandwidth;
    sends.push_back(use);
  }
  return sends;
}

/// Equal data in one piece: bounds hold for any chunks.
Demand joined_data(const Demand& rest) {
  const auto same = [](const Contribution& a, const Contribution& b) {
    return a.origin == b.origin && a.reduce == b.reduce && a.sources == b.sources &&
           a.destinations == b.destinations && a.ready_us == b.ready_us &&
           a.source_ready_us == b.source_ready_us && a.held == b.held;
  };
  std::map<std::tuple<GpuId, std::vector<GpuId>, std::vector<GpuId>>, std::vector<std::size_t>> alike;
  std::vector<Contribution> joined;
  for (const Contribution& c : rest.contributions()) {
    auto& places = alike[{c.origin, c.sources, c.destinations}];
    const auto at = std::ranges::find_if(places, [&](std::size_t i) { return same(joined[i], c); });
    if (at != places.end()) {
      joined[*at].bytes += c.bytes;
      continue;
    }
    places.push_back(joined.size());
    joined.push_back(c);
  }
  double bytes = 0;
  for (const Contribution& c : joined) bytes += c.bytes;
  return Demand(Collective::custom, bytes, rest.num_gpus(), std::move(joined), 1);
}

/// The sends of the rest in the time, the chunks and the links of the running schedule.
std::vector<Send> with_history(const LiveState& state, const RestDemand& demand, const FabricLeft& left,
                               std::span<const Send> rest) {
  std::vector<Send> sends = state.history;
  const std::int32_t next_number = next_transfer_number(sends);
  for (Send send : rest) {
    send.chunk = demand.running[send.chunk.index()];
    send.link = left.before[send.link.index()];
    delay(send, state.at_us);
    if (send.transfer != kNoTransfer) send.transfer += next_number;
    sends.push_back(send);
  }
  return sends;
}

/// Whether switches copy something of what is left of the plan.
bool copies_in_switches(const LiveState& state) {
  std::set<std::pair<ChunkId, GpuId>> at_once;
  for (std::size_t i = 0; i < state.left.size(); ++i) {
    const DeliveryLeft& delivery = state.left[i];
    if (i > 0 && !times_equal(delivery.start_us, state.left[i - 1].start_us)) at_once.clear();
    if (!at_once.emplace(delivery.chunk, delivery.src).second) return true;
  }
  return false;
}

class Repairing {
 public:
  Repairing(const ProvenSchedule& running, const Failure& failure, const RunContext& context)
      : running_(running),
        context_(context),
        state_(live_state(running, failure.at_us, failure.links)),
        demand_(rest_demand(running.demand, state_)),
        left_(fabric_left(running.topology, failure)),
        there_(failure.at_us > 0 ? failing(running.topology, failure) : *left_.topology) {
    if (failure.at_us > 0) return;
    // From the beginning the links are not there.
    for (std::size_t l = 0; l < left_.before.size(); ++l) left_.before[l] = LinkId(l);
  }

  Repair run() {
    if (!demand_) {
      ProvenSchedule landed = whole({});
      landed.schedule.finish_us =
          replayed_finish_us(there_, running_.demand, landed.schedule.sends, "what was in flight");
      return described(std::move(landed), "what was in flight");
    }
    check_reachable(*left_.topology, demand_->demand);
    const LowerBound bound = rondo::bound({left_.topology, joined_data(demand_->demand)}, context_).best();
    enough_us_ = state_.left.size() < kManyLeft ? 0 : bound.us * (1 + kEnoughGap);
    try_all();
    if (!best_) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("no schedule of the rest was found: {}; rondo solve makes one from the beginning "
                      "on the fabric that is left",
                      why_none_));
    }
    Repair made = described(std::move(*whole_), made_by_);
    made.rest = ProvenSchedule{*left_.topology, demand_->demand, *best_, bound, producer()};
    verify(*made.rest);
    return made;
  }

 private:
  Repair described(ProvenSchedule whole, const std::string& made_by) const {
    Repair made{.whole = std::move(whole),
                .lost = state_.lost,
                .in_flight = state_.in_flight,
                .landed_us = state_.landed_us};
    made.made_by = made_by;
    return made;
  }

  void try_all() {
    const std::vector<Send> on_links = under_way(running_, state_, left_);
    const RestToDo rest{*left_.topology, *demand_, state_, left_.now, on_links, kDefaultConcurrency};
    const bool has_sums =
        std::ranges::any_of(demand_->demand.contributions(), [](const Contribution& c) { return c.reduce; });
    const double planned_us = running_.schedule.finish_us - state_.at_us;
    const bool copying = copies_in_switches(state_);
    if (copying) {
      make("continued/copying", [&] { return continued(rest, {.due_scale = INFINITY, .copying = true}); });
      if (is_enough()) return;
    }
    make("continued", [&] { return continued(rest, {.due_scale = INFINITY}); });
    if (is_enough()) return;
    if (has_sums) {
      make("continued/broken-first",
           [&] { return continued(rest, {.broken_first = true, .due_scale = INFINITY}); });
    } else {
      std::string policy;
      make("list", [&] {
        ListedRest listed =
            list_rest(*left_.topology, demand_->demand, on_links, kDefaultConcurrency, kListWork);
        policy = listed.policy;
        return std::move(listed.schedule);
      });
      if (!made_.empty() && made_.back().name == "list") made_.back().name += "/" + policy;
    }
    keep_best();
    if (!best_) return;
    // Nothing has to be earlier than the best schedule ends.
    const double due_scale = std::max(1.0, best_->finish_us / planned_us);
    make("continued/in-time", [&] { return continued(rest, {.due_scale = due_scale}); });
    if (copying) {
      make("continued/copying/in-time",
           [&] { return continued(rest, {.due_scale = due_scale, .copying = true}); });
    }
    if (has_sums) {
      make("continued/broken-first/in-time",
           [&] { return continued(rest, {.broken_first = true, .due_scale = due_scale}); });
    }
    keep_best();
  }

  /// Of what was made, whether one is as good as is asked for of many deliveries.
  bool is_enough() {
    const auto ends_in_time = [&](const Made& made) { return made.schedule.finish_us <= enough_us_; };
    if (std::ranges::none_of(made_, ends_in_time)) return false;
    keep_best();
    return best_ && best_->finish_us <= enough_us_;
  }

  void make(const std::string& name, const std::function<Schedule()>& way) {
    try {
      Schedule schedule = way();
      schedule.finish_us = 0;
      for (const Send& send : schedule.sends)
        schedule.finish_us = std::max(schedule.finish_us, send.arrival_us);
      made_.push_back({name, std::move(schedule)});
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
      why_none_ = error.what();
    }
  }

  /// Of what was made, the first to end that the replay accepts after what has happened, if it ends before
  /// the best so far. Replaying takes most of the time: what ends later is not looked at.
  void keep_best() {
    std::ranges::stable_sort(made_, {}, [](const Made& made) { return made.schedule.finish_us; });
    for (Made& made : made_) {
      if (best_ && best_->finish_us <= made.schedule.finish_us) break;
      ProvenSchedule after = whole(made.schedule.sends);
      const ReplayResult replayed = replay(there_, running_.demand, after.schedule.sends);
      if (!replayed.valid()) {
        why_none_ = *replayed.violation;
        continue;
      }
      after.schedule.finish_us = replayed.finish_us;
      best_ = std::move(made.schedule);
      made_by_ = made.name;
      whole_ = std::move(after);
    }
    made_.clear();
  }

  /// What has happened, then `rest`; not replayed.
  ProvenSchedule whole(std::span<const Send> rest) const {
    Schedule schedule{demand_ ? with_history(state_, *demand_, left_, rest) : state_.history};
    number_transfers(there_, running_.demand, schedule.sends);
    canonicalise(schedule);
    return {there_, running_.demand, std::move(schedule), std::nullopt, producer()};
  }

  struct Made {
    std::string name;
    Schedule schedule;
  };

  const ProvenSchedule& running_;
  const RunContext& context_;
  LiveState state_;
  std::optional<RestDemand> demand_;
  FabricLeft left_;
  Topology there_;          ///< of the whole schedule
  std::vector<Made> made_;  ///< not yet replayed
  double enough_us_ = 0;    ///< a schedule that ends by then will do
  std::optional<Schedule> best_;
  std::optional<ProvenSchedule> whole_;  ///< what has happened and then the best
  std::string made_by_;
  std::string why_none_ = "nothing applied";
};

}  // namespace

Repair repair(const ProvenSchedule& running, const Failure& failure, const RunContext& context) {
  if (running.demand.forbids_relays()) {
    throw Error(ExitCode::unavailable,
                "the schedule is of a group without relays (--relay none), and a repair may go over any GPU; "
                "use rondo solve on the fabric that is left");
  }
  if (has_limited_relays(running.topology, running.demand)) {
    throw Error(
        ExitCode::unavailable,
        "GPUs have little memory for what they only pass on (buffer_bytes), which repairs do not heed; "
        "use rondo solve on the fabric that is left");
  }
  return Repairing(running, failure, context).run();
}

}  // namespace rondo
