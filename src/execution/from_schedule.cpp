#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/execution/program.hpp"
#include "schedule_places.hpp"

namespace rondo::execution {
namespace {

class FromSchedule {
 public:
  FromSchedule(const ProvenSchedule& proven, double bytes, Arithmetic arithmetic)
      : proven_(proven),
        moved_(transfers_of(proven.topology, proven.demand, proven.schedule.sends).deliveries),
        first_(first_arrivals(proven.demand, moved_)),
        result_(empty_program(proven, arithmetic)),
        places_(proven, moved_, bytes, result_) {}

  Program translate() && {
    add_own_parts();
    add_transfers();
    add_waits_of_copies();
    add_sums();
    return std::move(result_);
  }

 private:
  static Program empty_program(const ProvenSchedule& proven, Arithmetic arithmetic) {
    Program program;
    program.name = proven.topology.name();
    // In a group, or by counts, what is to be delivered says all.
    if (proven.demand.shape().is_plain()) program.coll = proven.demand.collective();
    program.root = root_of(proven.demand).value;
    program.arithmetic = arithmetic;
    for (const Contribution& contribution : proven.demand.contributions()) {
      program.combines = program.combines || contribution.reduce;
      if (contribution.held.empty()) continue;
      throw Error(ExitCode::unavailable,
                  fmt::format("GPU {} holds a partial sum at first ('held'); that is not executed",
                              contribution.held.front().gpu.value));
    }
    return program;
  }

  bool is_sum(std::size_t d) const { return proven_.demand.contribution(moved_[d].chunk).reduce; }
  Step& step_at(StepRef at) { return result_.lanes[index(at.lane)].steps[index(at.step)]; }

  int new_lane(int gpu) {
    result_.lanes.push_back({.gpu = gpu});
    return static_cast<int>(result_.lanes.size()) - 1;
  }
  StepRef append(int lane, Step step) {
    auto& steps = result_.lanes[index(lane)].steps;
    steps.push_back(std::move(step));
    return {lane, static_cast<int>(steps.size()) - 1};
  }

  /// What a GPU sends to itself in the collective is no part of a schedule.
  void add_own_parts() {
    if (result_.coll == Collective::custom) return;
    for (const Delivery& delivery : result_.deliveries) {
      if (delivery.from.size() > 1 || delivery.from.front().gpu != delivery.to) continue;
      const auto g = static_cast<std::size_t>(delivery.to);
      append(new_lane(delivery.to), {.src = result_.input[g].offset + delivery.from.front().offset,
                                     .dst = result_.output[g].offset + delivery.output,
                                     .bytes = delivery.bytes,
                                     .name = fmt::format("the own part of gpu {}", g)});
    }
  }

  /// A lane a link for what begins there, in its order; a lane for what arrives on each connection.
  void add_transfers() {
    std::map<std::int32_t, int> lane_of_link;
    std::map<std::pair<std::int32_t, int>, int> connection_of;  // (first link, GPU at the end)
    std::vector<int> receiving_lane;                            // per connection
    for (std::size_t d = 0; d < moved_.size(); ++d) {
      const auto& [chunk, src, dst] = std::tie(moved_[d].chunk, moved_[d].src, moved_[d].dst);
      const LinkId link = proven_.schedule.sends[index(moved_[d].first_send)].link;
      const auto lane = lane_of_link.try_emplace(link.value, -1).first;
      if (lane->second < 0) lane->second = new_lane(src.value);
      const int connections = static_cast<int>(result_.connections.size());
      const int connection = connection_of.try_emplace({link.value, dst.value}, connections).first->second;
      if (connection == connections) {
        result_.connections.push_back({src.value, dst.value});
        receiving_lane.push_back(new_lane(dst.value));
      }
      const std::string name =
          fmt::format("chunk {} from gpu {} to gpu {}", chunk.value, src.value, dst.value);
      const std::size_t home = places_.home(chunk, src);
      departures_.push_back(
          append(lane->second, {.send_to = connection,
                                .src = home != kNowhere ? home : places_.gathered(chunk, src),
                                .bytes = places_.bytes(chunk),
                                .name = name + " (send)"}));
      receipts_.push_back(append(receiving_lane[index(connection)], {.receive_from = connection,
                                                                     .dst = kept_at(d),
                                                                     .bytes = places_.bytes(chunk),
                                                                     .name = name + " (receive)"}));
    }
  }

  /// Of what is only copied the first copy is kept; a source keeps its own.
  std::size_t kept_at(std::size_t d) const {
    const rondo::Delivery& delivery = moved_[d];
    if (is_sum(d)) return places_.arrival(d);
    const bool keeps = places_.home(delivery.chunk, delivery.dst) == kNowhere &&
                       first_(delivery.chunk, delivery.dst) == static_cast<int>(d);
    return keeps ? places_.gathered(delivery.chunk, delivery.dst) : kNowhere;
  }

  /// A chunk leaves once it is there. What never comes is waited for by a step that waits for itself.
  void add_waits_of_copies() {
    for (std::size_t d = 0; d < moved_.size(); ++d) {
      if (is_sum(d) || places_.home(moved_[d].chunk, moved_[d].src) != kNowhere) continue;
      const int arrival = first_(moved_[d].chunk, moved_[d].src);
      step_at(departures_[d]).after.push_back(arrival < 0 ? departures_[d] : receipts_[index(arrival)]);
    }
  }

  /// What a GPU has of a sum changes in steps of its own, all of a GPU in one lane in the order of time: by
  /// then every arrival has been received, so that no connection waits for them.
  void add_sums() {
    std::map<std::pair<ChunkId, GpuId>, std::vector<std::size_t>> departures, arrivals;
    for (std::size_t d = 0; d < moved_.size(); ++d) {
      if (!is_sum(d)) continue;
      departures[{moved_[d].chunk, moved_[d].src}].push_back(d);
      arrivals[{moved_[d].chunk, moved_[d].dst}].push_back(d);
    }
    std::vector<std::size_t> order;
    for (auto& [place, here] : arrivals) {
      sort_arrivals(here);
      std::ranges::copy(here, std::back_inserter(order));
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t d) { return counted_us_[d]; });
    add_changes(arrivals, order);
    for (const auto& [place, here] : departures) {
      for (const std::size_t d : here) add_departure(d, arrivals[place]);
    }
  }

  /// By time; of those at one time copies come first. That one time then counts for all of them.
  void sort_arrivals(std::vector<std::size_t>& here) {
    const auto time = [&](std::size_t d) { return moved_[d].arrival_us; };
    std::ranges::stable_sort(here, {}, time);
    for (auto first = here.begin(); first != here.end();) {
      const auto last =
          std::find_if(first, here.end(), [&](std::size_t d) { return !times_equal(time(d), time(*first)); });
      const double at_us = time(*first);
      for (auto d = first; d != last; ++d) counted_us_[*d] = at_us;
      std::stable_partition(first, last, [&](std::size_t d) { return moved_[d].op == SendOp::copy; });
      first = last;
    }
  }

  void add_changes(const std::map<std::pair<ChunkId, GpuId>, std::vector<std::size_t>>& arrivals,
                   const std::vector<std::size_t>& order) {
    std::map<GpuId, int> lane_of_gpu;
    for (const std::size_t d : order) {
      const auto& [chunk, dst] = std::tie(moved_[d].chunk, moved_[d].dst);
      const auto lane = lane_of_gpu.try_emplace(dst, -1).first;
      if (lane->second < 0) lane->second = new_lane(dst.value);
      const std::size_t home = places_.home(chunk, dst), at = places_.gathered(chunk, dst);
      const bool is_first = arrivals.at({chunk, dst}).front() == d;
      const bool adds = moved_[d].op == SendOp::reduce && (!is_first || home != kNowhere);
      const std::string name =
          fmt::format("chunk {} from gpu {} at gpu {}", chunk.value, moved_[d].src.value, dst.value);
      if (adds && is_first) {
        append(lane->second,
               {.src = home, .dst = at, .bytes = places_.bytes(chunk), .name = name + " (own summand)"});
      }
      changes_[d] = append(lane->second, {.src = places_.arrival(d),
                                          .dst = at,
                                          .bytes = places_.bytes(chunk),
                                          .add = adds,
                                          .after = {receipts_[d]},
                                          .name = name + (adds ? " (add)" : " (take)")});
    }
  }

  /// It carries what has arrived by its start, and what arrives later waits for it.
  void add_departure(std::size_t d, const std::vector<std::size_t>& arrivals) {
    const auto is_included = [&](std::size_t other) {
      const double at_us = moved_[other].arrival_us, start_us = moved_[d].start_us;
      return at_us <= start_us || times_equal(at_us, start_us);
    };
    const auto later = std::ranges::partition_point(arrivals, is_included);
    Step& departure = step_at(departures_[d]);
    if (later != arrivals.begin()) {
      departure.src = places_.gathered(moved_[d].chunk, moved_[d].src);
      departure.after.push_back(changes_[*(later - 1)]);
    } else if (places_.home(moved_[d].chunk, moved_[d].src) == kNowhere) {
      departure.after.push_back(departures_[d]);
    }
    if (later != arrivals.end()) step_at(changes_[*later]).after.push_back(departures_[d]);
  }

  const ProvenSchedule& proven_;
  std::vector<rondo::Delivery> moved_;
  ChunkGpuTable<int> first_;
  Program result_;
  SchedulePlaces places_;
  std::vector<StepRef> departures_, receipts_;  ///< per delivery
  std::map<std::size_t, StepRef> changes_;      ///< per delivery of a sum
  std::map<std::size_t, double> counted_us_;    ///< per delivery of a sum: when it arrives
};

}  // namespace

Program from_schedule(const ProvenSchedule& proven, double bytes, Arithmetic arithmetic) {
  return FromSchedule(proven, bytes, arithmetic).translate();
}

}  // namespace rondo::execution
