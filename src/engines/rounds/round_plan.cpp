#include "round_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double slack_us(double t_us) {
  return 1e-7 + 1e-10 * t_us;
}

}  // namespace

HopFinder::HopFinder(const HopTable& hops, const Demand& demand) : hops_(hops), demand_(demand) {
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    hops_from_link_[hops.hops()[h].links.front().link].push_back(static_cast<int>(h));
  }
}

std::vector<Move> HopFinder::moves_of(std::span<const Send> sends) const {
  struct Start {
    double us;
    double end_us;
    bool explained = false;
  };
  std::map<std::pair<ChunkId, LinkId>, std::vector<Start>> starts;  // of every chunk on every link
  for (const Send& send : sends) starts[{send.chunk, send.link}].push_back({send.start_us, send.end_us});
  // Those sends of the hop that belong to no hop found before; fewer than its links where some are missing.
  // Two GPUs may receive the chunk from two others at the same time, so each send is used once, and has to
  // run at the hop's rate.
  const auto sends_of = [&](const Hop& hop, ChunkId c, double start_us) {
    const double bytes = demand_.bytes(c);
    std::vector<Start*> found;
    for (const HopLink& part : hop.links) {
      const auto on_link = starts.find({c, part.link});
      if (on_link == starts.end()) break;
      const double expected_us = start_us + part.offset_us_of(bytes);
      const auto match =
          std::find_if(on_link->second.begin(), on_link->second.end(), [&](const Start& start) {
            return !start.explained && std::abs(start.us - expected_us) <= slack_us(start.us) &&
                   std::abs(start.end_us - expected_us - part.occupied_us(bytes)) <= slack_us(start.end_us);
          });
      if (match == on_link->second.end()) break;
      found.push_back(&*match);
    }
    return found;
  };
  std::vector<Move> moves;
  std::size_t explained = 0;
  for (const Send& send : sends) {
    const auto candidates = hops_from_link_.find(send.link);
    if (candidates == hops_from_link_.end()) continue;  // it leaves a switch
    for (const int h : candidates->second) {
      const std::vector<Start*> found = sends_of(hops_.hop(h), send.chunk, send.start_us);
      if (found.size() < hops_.hop(h).links.size()) continue;
      for (Start* start : found) start->explained = true;
      moves.push_back({send.chunk, h, send.start_us});
      explained += found.size();
      break;
    }
  }
  if (explained != sends.size()) {
    throw Error(ExitCode::bad_data, "a round's sends are not made of whole transfers from GPU to GPU");
  }
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::tie(a.start_us, a.hop) < std::tie(b.start_us, b.hop);
  });
  return moves;
}

CommittedSchedule::CommittedSchedule(const Topology& topology, const HopTable& hops, const Demand& demand)
    : topology_(topology), hops_(hops), demand_(demand), timetable_(topology), held_from_us_(demand, kNever) {
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c{i};
    held_from_us_(c, demand.origin(c)) = demand.ready_us(c);
  }
}

void CommittedSchedule::receive(std::span<const Send> sends, ChunkGpuTable<double>& held_from_us) const {
  for (const Send& send : sends) {
    const NodeId head = topology_.link(send.link).dst;
    if (!topology_.is_gpu(head)) continue;
    double& held = held_from_us(send.chunk, topology_.gpu_of(head));
    held = std::min(held, send.arrival_us);
  }
}

void CommittedSchedule::fix(std::span<const Send> sends) {
  if (sends.empty()) return;  // recent_ stays as it is
  double earliest = kNever;
  for (const Send& send : sends) {
    timetable_.occupy(send, demand_.bytes(send.chunk));
    earliest = std::min(earliest, send.start_us);
  }
  receive(sends, held_from_us_);
  std::erase_if(recent_, [&](const Send& send) { return send.end_us < earliest; });
  recent_.insert(recent_.end(), sends.begin(), sends.end());
}

std::vector<Send> CommittedSchedule::realise(std::span<const Move> moves, double not_before_us) const {
  LinkTimetable timetable = timetable_;
  ChunkGpuTable<double> held = held_from_us_;
  std::vector<Send> sends;
  for (const Move& move : moves) {
    const Hop& hop = hops_.hop(move.hop);
    const double source_us = held(move.chunk, hop.src);
    double& target_us = held(move.chunk, hop.dst);
    if (!std::isfinite(source_us) || std::isfinite(target_us)) continue;
    const double bytes = demand_.bytes(move.chunk);
    const double start = timetable.earliest_start(hop, bytes, std::max(not_before_us, source_us));
    target_us = timetable.reserve(hop, move.chunk, bytes, start, sends);
  }
  return sends;
}

PartialSchedule CommittedSchedule::partial(double time_us, std::span<const Send> more) const {
  ChunkGpuTable<double> held = held_from_us_;
  receive(more, held);
  PartialSchedule partial{time_us};
  for (std::size_t i = 0; i < demand_.num_chunks(); ++i) {
    const ChunkId c{i};
    for (std::size_t j = 0; j < demand_.num_gpus(); ++j) {
      const GpuId g{j};
      if (std::isfinite(held(c, g)) && g != demand_.origin(c)) partial.holdings.push_back({c, g, held(c, g)});
    }
  }
  for (const auto& sends : {std::span<const Send>(recent_), more}) {
    for (const Send& send : sends) {
      if (send.end_us > time_us) partial.on_links.push_back(send);
    }
  }
  return partial;
}

RoundState CommittedSchedule::state(double time_us) const {
  RoundState state{time_us};
  for (std::size_t i = 0; i < demand_.num_chunks(); ++i) {
    const ChunkId c{i};
    for (std::size_t g = 0; g < demand_.num_gpus(); ++g) {
      const double from_us = held_from_us(c, GpuId{g});
      if (GpuId{g} == demand_.origin(c) || !std::isfinite(from_us)) continue;
      (from_us <= time_us ? state.buffers : state.in_flight).push_back({c, GpuId{g}, from_us});
    }
    for (const GpuId d : demand_.destinations(c)) {
      if (!std::isfinite(held_from_us(c, d))) state.unmet.push_back({c, d});
    }
  }
  return state;
}

bool CommittedSchedule::all_met() const {
  for (std::size_t i = 0; i < demand_.num_chunks(); ++i) {
    for (const GpuId d : demand_.destinations(ChunkId{i})) {
      if (!std::isfinite(held_from_us(ChunkId{i}, d))) return false;
    }
  }
  return true;
}

}  // namespace rondo
