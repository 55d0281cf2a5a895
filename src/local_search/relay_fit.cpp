#include "rondo/local_search/relay_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/core/usage_profile.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {
namespace {

/// What by_whole_chunks() looks at.
constexpr std::size_t kMostSends = 4000;
constexpr std::size_t kMostGpus = 64;
constexpr double kRooms[] = {1, 2, 4, 8};  ///< in chunks

class RelayFit {
 public:
  RelayFit(TransferPlan& plan, const PlanSpace& space)
      : plan_(plan),
        space_(space),
        timetable_(*space.topology, InsertionTimetable::Reading::forwards, space.concurrency),
        enters_relay_(plan.transfers.size(), 0),
        sent_on_us_(plan.transfers.size(), 0),
        needed_us_(plan.transfers.size(), kInfinity),
        members_(space.demand.num_chunks()) {
    for (const double bytes : space.relay_bytes) used_.emplace_back(bytes);
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      const PlannedTransfer& t = plan.transfers[i];
      const GpuId to = space.hop(t).dst;
      enters_relay_[i] =
          std::isfinite(space.relay_bytes[to.index()]) && only_relays(space.demand.contribution(t.chunk), to)
              ? 1
              : 0;
      has_copies_ = has_copies_ || t.copy_of >= 0;
      members_[t.chunk.index()].push_back(i);
    }
  }

  /// Whether the plan does as it is.
  bool fits() {
    std::vector<UsageProfile> used = used_;
    for (const std::vector<std::size_t>& chunk : members_) {
      look_onwards(chunk);
      for (const std::size_t i : chunk) {
        if (enters_relay_[i] == 0) continue;
        const Stay stay = stay_of(i);
        UsageProfile& there = used[stay.gpu.index()];
        if (waits_us(there, stay) > 0) return false;
        there.add(stay.from_us, stay.to_us, stay.bytes);
      }
    }
    return true;
  }

  /// False where a chunk has no place.
  bool place() {
    if (has_copies_) return false;
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t c = 0; c < members_.size(); ++c) {
      double first_us = kInfinity;
      for (const std::size_t i : members_[c]) first_us = std::min(first_us, plan_.transfers[i].start_us);
      order.emplace_back(first_us, c);
    }
    std::ranges::sort(order);
    TimeCheck check_time(space_);
    return std::ranges::all_of(order, [&](const auto& entry) {
      check_time();
      return place_chunk(members_[entry.second]);
    });
  }

 private:
  struct Stay {
    GpuId gpu;
    double from_us, to_us, bytes;
  };

  PlannedTransfer& transfer(std::size_t i) { return plan_.transfers[i]; }
  const PlannedTransfer& transfer(std::size_t i) const { return plan_.transfers[i]; }

  /// When the first link of the transfer is free of it.
  double leaves_us(const PlannedTransfer& t) const {
    if (space_.hop(t).changes) return space_.timing(t).uses.front().end_us;
    const HopLink& first = space_.hop(t).links.front();
    const double bytes = space_.bytes(t);
    return t.start_us + first.offset_us_of(bytes) + first.occupied_us(bytes);
  }
  Stay stay_of(std::size_t i) const {
    const PlannedTransfer& t = transfer(i);
    const Hop& hop = space_.hop(t);
    const double on_last_us = hop.changes ? space_.timing(t).uses.back().start_us
                                          : t.start_us + hop.links.back().offset_us_of(space_.bytes(t));
    return {hop.dst, on_last_us + space_.topology->link(hop.links.back().link).latency_us,
            std::max(sent_on_us_[i], space_.arrival_us(t)), space_.bytes(t)};
  }
  static double waits_us(const UsageProfile& used, const Stay& stay) {
    const double room_us = used.room_from(stay.from_us, stay.to_us - stay.from_us, stay.bytes);
    return room_us > stay.from_us + time_slack_us(stay.to_us) ? room_us - stay.from_us : 0;
  }
  /// When what each transfer of the chunk brings is needed first, and has been sent on last.
  void look_onwards(const std::vector<std::size_t>& chunk) {
    for (const std::size_t i : chunk) {
      sent_on_us_[i] = 0;
      needed_us_[i] = kInfinity;
    }
    for (const std::size_t i : chunk) note_cause(i);
  }
  void note_cause(std::size_t i) {
    const PlannedTransfer& t = transfer(i);
    if (t.cause < 0) return;
    const std::size_t cause = index(t.cause);
    sent_on_us_[cause] = std::max(sent_on_us_[cause], leaves_us(t));
    needed_us_[cause] = std::min(needed_us_[cause], t.start_us);
  }

  double held_us(const PlannedTransfer& t, double not_before_us) const {
    return t.cause < 0 ? std::max(not_before_us, space_.demand.ready_us(t.chunk))
                       : space_.arrival_us(transfer(index(t.cause)));
  }
  /// Each as early as links allow, none before the other; then what comes to relays as late as it may.
  bool start_all(const std::vector<std::size_t>& chunk, double not_before_us) {
    for (const std::size_t i : chunk) {
      PlannedTransfer& t = transfer(i);
      t.start_us = timetable_.earliest_start(space_.hop(t), space_.bytes(t), held_us(t, not_before_us));
      if (!std::isfinite(t.start_us)) return false;
      sent_on_us_[i] = 0;
      needed_us_[i] = kInfinity;
    }
    for (auto i = chunk.rbegin(); i != chunk.rend(); ++i) {
      PlannedTransfer& t = transfer(*i);
      if (enters_relay_[*i] != 0 && std::isfinite(needed_us_[*i]) && !space_.hop(t).changes) {
        const double latest_us = needed_us_[*i] - space_.duration_us(t);
        const double slack_us = time_slack_us(needed_us_[*i]);
        if (latest_us > t.start_us + slack_us &&
            timetable_.earliest_start(space_.hop(t), space_.bytes(t), latest_us) <= latest_us + slack_us)
          t.start_us = latest_us;
      }
      note_cause(*i);
    }
    return true;
  }

  bool place_chunk(const std::vector<std::size_t>& chunk) {
    for (double not_before_us = 0;;) {
      if (!start_all(chunk, not_before_us)) return false;
      double waits = 0;
      double first_us = kInfinity;
      for (const std::size_t i : chunk) {
        first_us = std::min(first_us, transfer(i).start_us);
        if (enters_relay_[i] == 0) continue;
        const Stay stay = stay_of(i);
        waits = std::max(waits, waits_us(used_[stay.gpu.index()], stay));
      }
      if (!std::isfinite(waits)) return false;
      if (waits == 0) return take(chunk);
      not_before_us = first_us + waits;
    }
  }

  /// Branches of a tree may want the same link: the later one waits, if there is memory for that.
  bool take(const std::vector<std::size_t>& chunk) {
    for (const std::size_t i : chunk) {
      PlannedTransfer& t = transfer(i);
      const double bytes = space_.bytes(t);
      t.start_us =
          timetable_.earliest_start(space_.hop(t), bytes, std::max(t.start_us, held_us(t, t.start_us)));
      if (!std::isfinite(t.start_us)) return false;
      timetable_.reserve(space_.hop(t), bytes, t.start_us);
    }
    look_onwards(chunk);
    for (const std::size_t i : chunk) {
      if (enters_relay_[i] == 0) continue;
      const Stay stay = stay_of(i);
      if (waits_us(used_[stay.gpu.index()], stay) > 0) return false;
      used_[stay.gpu.index()].add(stay.from_us, stay.to_us, stay.bytes);
    }
    return true;
  }

  TransferPlan& plan_;
  const PlanSpace& space_;
  InsertionTimetable timetable_;
  std::vector<UsageProfile> used_;  ///< per GPU
  std::vector<char> enters_relay_;  ///< per transfer: a GPU of limited memory only passes it on
  std::vector<double> sent_on_us_;  ///< per transfer: end of the last send of what it brings
  std::vector<double> needed_us_;   ///< per transfer: start of the first one
  std::vector<std::vector<std::size_t>> members_;  ///< transfers of each chunk, causes first
  bool has_copies_ = false;
};

}  // namespace

void settle(TransferPlan& plan, const PlanSpace& space) {
  if (!space.relay_bytes.empty()) {
    RelayFit fit(plan, space);
    if (!fit.fits() && !fit.place()) {
      plan.quality = {kInfinity, kInfinity};
      return;
    }
  }
  plan.quality = quality_of(plan.transfers, space);
}

Schedule fitted_to_memory(const Topology& topology, const Demand& demand, Schedule schedule,
                          int concurrency) {
  const std::vector<double> peak = peak_relay_bytes(topology, demand, schedule.sends);
  bool fits = true;
  for (std::size_t g = 0; g < peak.size(); ++g)
    fits = fits && peak[g] <= topology.node(topology.node_of(GpuId{g})).relay_bytes * (1 + 1e-9);
  if (fits) return schedule;  // also where chunks come again, which plans do not know
  PlanSpace space = make_plan_space(topology, demand, concurrency);
  std::optional<TransferPlan> plan = plan_of(schedule, space);
  if (plan) {
    settle(*plan, space);
    if (std::isfinite(plan->quality.finish_us)) return schedule_of(*plan, space);
  }
  throw Error(ExitCode::unavailable,
              "GPUs have little memory for what they only pass on (buffer_bytes, --relay-memory), and the "
              "routes of this engine do not fit it at any time");
}

Schedule by_whole_chunks(const Topology& topology, const Demand& demand, Schedule schedule, int concurrency) {
  const bool is_small = schedule.sends.size() <= kMostSends && topology.num_gpus() <= kMostGpus;
  if (!is_small || !demand.is_unicast() || topology.has_message_costs() || topology.has_bandwidth_steps())
    return schedule;
  PlanSpace space = make_plan_space(topology, demand, concurrency);
  const std::optional<TransferPlan> plan = plan_of(schedule, space);
  if (!plan || std::ranges::all_of(plan->transfers, [](const PlannedTransfer& t) { return t.cause < 0; }))
    return schedule;
  double chunk_bytes = 0;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c)
    chunk_bytes = std::max(chunk_bytes, demand.bytes(ChunkId{c}));
  double best_us = schedule.finish_us * (1 - 1e-9);
  for (const double chunks : kRooms) {
    space.relay_bytes.assign(topology.num_gpus(), chunks * chunk_bytes);
    TransferPlan again = *plan;
    settle(again, space);
    if (again.quality.finish_us >= best_us) continue;
    best_us = again.quality.finish_us;
    schedule = schedule_of(again, space);
  }
  return schedule;
}

}  // namespace rondo
