#include "rondo/local_search/transfer_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

/// Beyond, ways that the schedule uses are choice enough: a table of all would be larger than the schedule.
constexpr std::size_t kMostGpusWithTable = 128;

/// The sends through switches that follow one another: which send takes further what another brings in.
class Followers {
 public:
  Followers(const Topology& topology, const std::vector<Send>& sends)
      : topology_(topology), sends_(sends), taken_(sends.size(), 0) {
    for (std::size_t s = 0; s < sends.size(); ++s) {
      const NodeId from = topology.link(sends[s].link).src;
      if (!topology.is_gpu(from)) waiting_[key(sends[s].chunk, from)].push_back(s);
    }
  }

  /// -1: none that is left.
  int after(const Send& in) {
    const Link& link = topology_.link(in.link);
    const bool cut_through = topology_.node(link.dst).forwarding == Forwarding::cut_through;
    const double ready = cut_through ? in.start_us + link.latency_us : in.arrival_us;
    for (const std::size_t s : waiting_[key(in.chunk, link.dst)]) {
      const Send& out = sends_[s];
      if (taken_[s] != 0 || !times_equal(out.start_us, ready)) continue;
      // Where two copies pass at the same time, each goes on at its own rate.
      if (cut_through && !times_equal(out.end_us - out.start_us + ready, in.end_us - in.start_us + ready))
        continue;
      taken_[s] = 1;
      return static_cast<int>(s);
    }
    return -1;
  }
  bool all_taken() const {
    return std::ranges::all_of(waiting_, [&](const auto& entry) {
      return std::ranges::all_of(entry.second, [&](std::size_t s) { return taken_[s] != 0; });
    });
  }

 private:
  std::uint64_t key(ChunkId chunk, NodeId node) const {
    return static_cast<std::uint64_t>(chunk.index()) * topology_.num_nodes() + node.index();
  }

  const Topology& topology_;
  const std::vector<Send>& sends_;
  std::vector<char> taken_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> waiting_;
};

/// Of each (chunk, GPU) the transfer that brings it first; -1: none.
std::vector<int> first_bringers(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space) {
  const std::size_t gpus = space.topology->num_gpus();
  std::vector<int> bringer(space.demand.num_chunks() * gpus, -1);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& t = transfers[i];
    int& known = bringer[t.chunk.index() * gpus + space.hop(t).dst.index()];
    if (known < 0 || space.arrival_us(t) < space.arrival_us(transfers[index(known)]))
      known = static_cast<int>(i);
  }
  return bringer;
}

}  // namespace

int PlanSpace::add(Hop hop) {
  into[hop.dst.index()].push_back(static_cast<int>(hops.size()));
  hops.push_back(std::move(hop));
  return static_cast<int>(hops.size()) - 1;
}

PlanSpace make_plan_space(const Topology& topology, const Demand& demand) {
  PlanSpace space{&topology, demand};
  space.into.resize(topology.num_gpus());
  if (topology.num_gpus() > kMostGpusWithTable) return space;
  const HopTable table(topology);
  for (const Hop& hop : table.hops()) space.add(hop);
  return space;
}

PlanSpace with_chunks(const PlanSpace& space, int chunks_per_contribution) {
  return {space.topology, space.demand.with_chunks(chunks_per_contribution), space.hops, space.into};
}

PlanQuality quality_of(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space) {
  PlanQuality quality;
  std::vector<double> taken(space.topology->num_links(), 0);
  std::vector<double> end(taken.size(), 0);
  for (const PlannedTransfer& t : transfers) {
    const double bytes = space.bytes(t);
    quality.finish_us = std::max(quality.finish_us, space.arrival_us(t));
    for (const HopLink& part : space.hop(t).links) {
      const std::size_t l = part.link.index();
      const double occupied = part.occupied_us(bytes);
      taken[l] += occupied;
      end[l] = std::max(end[l], t.start_us + part.offset_us_of(bytes) + occupied);
    }
  }
  // Finish times that rounding errors alone tell apart are the same.
  quality.finish_us = std::ceil(quality.finish_us * 1e6 - 1e-3) / 1e6;
  for (std::size_t l = 0; l < taken.size(); ++l) {
    const double share = taken[l] / quality.finish_us;
    quality.pressure_us += std::pow(share, 8) * end[l] / static_cast<double>(taken.size());
  }
  return quality;
}

std::optional<TransferPlan> plan_of(const Schedule& schedule, PlanSpace& space) {
  const Topology& topology = *space.topology;
  std::map<std::vector<LinkId>, int> known;
  const auto links_of = [](const Hop& hop) {
    std::vector<LinkId> links;
    for (const HopLink& part : hop.links) links.push_back(part.link);
    return links;
  };
  for (std::size_t h = 0; h < space.hops.size(); ++h)
    known.emplace(links_of(space.hops[h]), static_cast<int>(h));

  TransferPlan plan;
  Followers followers(topology, schedule.sends);
  for (const Send& first : schedule.sends) {
    if (!topology.is_gpu(topology.link(first.link).src)) continue;
    std::vector<LinkId> path{first.link};
    const Send* last = &first;
    while (!topology.is_gpu(topology.link(last->link).dst)) {
      const int next = followers.after(*last);
      if (next < 0) return std::nullopt;
      last = &schedule.sends[index(next)];
      path.push_back(last->link);
    }
    auto hop = known.find(path);
    if (hop == known.end()) hop = known.emplace(path, space.add(make_hop(topology, path))).first;
    plan.transfers.push_back({first.chunk, hop->second, -1, first.start_us});
  }
  if (!followers.all_taken()) return std::nullopt;

  const std::vector<int> bringer = first_bringers(plan.transfers, space);
  for (PlannedTransfer& t : plan.transfers) {
    const GpuId from = space.hop(t).src;
    if (from != space.demand.origin(t.chunk))
      t.cause = bringer[t.chunk.index() * topology.num_gpus() + from.index()];
  }
  drop_useless(plan, space);
  plan.quality = quality_of(plan.transfers, space);
  return plan;
}

Schedule schedule_of(const TransferPlan& plan, const PlanSpace& space) {
  Schedule schedule;
  for (const PlannedTransfer& t : plan.transfers) {
    append_sends(*space.topology, space.hop(t), t.chunk, space.bytes(t), t.start_us, schedule.sends);
  }
  schedule.finish_us = plan.quality.finish_us;
  canonicalise(schedule);
  return schedule;
}

TransferPlan split_in_halves(const TransferPlan& plan, const PlanSpace& halves) {
  TransferPlan split;
  split.quality = plan.quality;
  for (const PlannedTransfer& whole : plan.transfers) {
    for (const int half : {0, 1}) {
      PlannedTransfer t = whole;
      t.chunk = ChunkId{2 * whole.chunk.value + half};
      if (whole.cause >= 0) t.cause = 2 * whole.cause + half;
      t.start_us += half * halves.bytes(t) * halves.hop(t).links.front().us_per_byte;
      split.transfers.push_back(t);
    }
  }
  return split;
}

void drop_useless(TransferPlan& plan, const PlanSpace& space) {
  const std::vector<int> bringer = first_bringers(plan.transfers, space);
  const std::size_t gpus = space.topology->num_gpus();
  std::vector<char> useful(plan.transfers.size(), 0);
  for (std::size_t c = 0; c < space.demand.num_chunks(); ++c) {
    for (const GpuId g : space.demand.destinations(ChunkId{c})) {
      const int first = bringer[c * gpus + g.index()];
      if (first >= 0) useful[index(first)] = 1;
    }
  }
  for (std::size_t i = plan.transfers.size(); i-- > 0;) {
    if (useful[i] != 0 && plan.transfers[i].cause >= 0) useful[index(plan.transfers[i].cause)] = 1;
  }
  std::vector<int> place(plan.transfers.size(), -1);
  std::vector<PlannedTransfer> kept;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    if (useful[i] == 0) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(plan.transfers[i]);
    if (kept.back().cause >= 0) kept.back().cause = place[index(kept.back().cause)];
  }
  plan.transfers = std::move(kept);
}

}  // namespace rondo
