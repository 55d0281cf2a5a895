#include "rondo/local_search/transfer_plan.hpp"

#include <algorithm>
#include <cmath>

#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// With more, a table of all hops would be larger than the schedule; the paths that it uses are choice
/// enough.
constexpr std::size_t kMostGpusWithTable = 128;

}  // namespace

int PlanSpace::add(Hop hop) {
  into[hop.dst.index()].push_back(static_cast<int>(hops.size()));
  hops.push_back(std::move(hop));
  return static_cast<int>(hops.size()) - 1;
}

PlanSpace make_plan_space(const Topology& topology, const Demand& demand, int concurrency) {
  PlanSpace space{&topology, demand};
  space.concurrency = concurrency;
  space.into.resize(topology.num_gpus());
  if (topology.num_gpus() > kMostGpusWithTable) return space;
  const HopTable table(topology);
  for (const Hop& hop : table.hops()) space.add(hop);
  return space;
}

PlanSpace with_chunks(const PlanSpace& space, int chunks_per_contribution) {
  return {space.topology, space.demand.with_chunks(chunks_per_contribution), space.hops, space.into,
          space.concurrency};
}

PlanQuality quality_of(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space) {
  PlanQuality quality;
  std::vector<double> taken(space.topology->num_links(), 0);
  std::vector<double> end(taken.size(), 0);
  for (const PlannedTransfer& t : transfers) {
    const double bytes = space.bytes(t);
    quality.finish_us = std::max(quality.finish_us, space.arrival_us(t));
    if (space.hop(t).changes) {
      const HopTiming timing = space.timing(t);
      for (std::size_t i = 0; i < timing.uses.size(); ++i) {
        const std::size_t l = space.hop(t).links[i].link.index();
        taken[l] += timing.uses[i].end_us - timing.uses[i].start_us;
        end[l] = std::max(end[l], timing.uses[i].end_us);
      }
      continue;
    }
    for (const HopLink& part : space.hop(t).links) {
      const std::size_t l = part.link.index();
      taken[l] += part.load_us(bytes);
      end[l] = std::max(end[l], t.start_us + part.offset_us_of(bytes) + part.occupied_us(bytes));
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
  HopsByPath hops(space);
  TransferPlan plan;
  const Transfers transfers = transfers_of(*space.topology, space.demand, schedule.sends);
  std::size_t sends = 0;
  for (const Delivery& delivery : transfers.deliveries) {
    const std::vector<LinkId> path = path_of(delivery, transfers, schedule.sends);
    sends += path.size();
    plan.transfers.push_back({delivery.chunk, hops.of(path), delivery.cause, delivery.start_us});
    if (!times_equal(space.arrival_us(plan.transfers.back()), delivery.arrival_us)) return std::nullopt;
  }
  if (sends != schedule.sends.size()) return std::nullopt;  // what is copied is part of several paths
  drop_useless(plan, space);
  plan.quality = quality_of(plan.transfers, space);
  return plan;
}

Schedule schedule_of(const TransferPlan& plan, const PlanSpace& space) {
  Schedule schedule;
  for (const PlannedTransfer& t : plan.transfers) {
    append_sends(*space.topology, space.hop(t), t.chunk, space.bytes(t), t.start_us, schedule.sends);
  }
  // Where messages cost, transfers that meet in a switch cannot be told apart without numbers.
  if (space.topology->has_message_costs()) number_transfers(*space.topology, space.demand, schedule.sends);
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
      t.start_us += half * halves.hop(t).links.front().occupied_us(halves.bytes(t));
      split.transfers.push_back(t);
    }
  }
  return split;
}

void drop_useless(TransferPlan& plan, const PlanSpace& space) {
  std::vector<Delivery> deliveries;
  for (const PlannedTransfer& t : plan.transfers) {
    deliveries.push_back({.chunk = t.chunk,
                          .src = space.hop(t).src,
                          .dst = space.hop(t).dst,
                          .start_us = t.start_us,
                          .arrival_us = space.arrival_us(t),
                          .cause = t.cause});
  }
  keep_marked(plan.transfers, needed_deliveries(space.demand, deliveries));
}

}  // namespace rondo
