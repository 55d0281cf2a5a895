#include "rondo/local_search/transfer_plan.hpp"

#include <algorithm>
#include <cmath>

#include "copies.hpp"
#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// With more, a table of all hops would be larger than the schedule; the paths that it uses are choice
/// enough.
constexpr std::size_t kMostGpusWithTable = 128;

/// Copies that take longer or shorter than their originals, and those after them, become transfers of their
/// own: a switch copies at the rate of the slowest link, where plans let every hop have its own.
void part_at_other_rates(TransferPlan& plan, const PlanSpace& space) {
  int parted = -1;  // whose copies are by themselves from here on
  for (PlannedTransfer& t : plan.transfers) {
    if (t.copy_of < 0) continue;
    const PlannedTransfer& original = plan.transfers[index(t.copy_of)];
    if (!times_equal(space.duration_us(t), space.duration_us(original))) parted = t.copy_of;
    if (t.copy_of == parted) t.copy_of = -1;
  }
}

/// Whether copies of one transfer may share bandwidth, beside what else goes over their links: of the links
/// of a group that leave GPUs it takes one.
bool copies_share(const Topology& topology) {
  return std::ranges::any_of(topology.shared_bandwidth(), [&](const SharedBandwidth& group) {
    return std::ranges::any_of(group.links, [&](LinkId l) { return !topology.is_gpu(topology.link(l).src); });
  });
}

}  // namespace

int PlanSpace::add(Hop hop) {
  into[hop.dst.index()].push_back(static_cast<int>(hops.size()));
  if (may_copy())
    between[hop.src.index() * into.size() + hop.dst.index()].push_back(static_cast<int>(hops.size()));
  hops.push_back(std::move(hop));
  return static_cast<int>(hops.size()) - 1;
}

PlanSpace make_plan_space(const Topology& topology, const Demand& demand, int concurrency) {
  PlanSpace space{&topology, demand};
  space.concurrency = concurrency;
  space.into.resize(topology.num_gpus());
  if (has_limited_relays(topology, demand)) {
    for (std::size_t g = 0; g < topology.num_gpus(); ++g)
      space.relay_bytes.push_back(topology.node(topology.node_of(GpuId(g))).relay_bytes);
  }
  if (topology.num_gpus() > kMostGpusWithTable) return space;
  // Of what a switch copies joining makes no plan, and where bandwidth changes the branches differ in time.
  const bool may_copy = !topology.has_message_costs() && !topology.has_bandwidth_steps() &&
                        space.relay_bytes.empty() && !demand.is_unicast() && !copies_share(topology) &&
                        std::ranges::any_of(topology.nodes(), [](const Node& n) {
                          return n.kind == NodeKind::switch_ && n.multicast;
                        });
  if (may_copy) space.between.resize(topology.num_gpus() * topology.num_gpus());
  const HopTable table(topology);
  for (const Hop& hop : table.hops()) space.add(hop);
  return space;
}

PlanSpace with_chunks(const PlanSpace& space, int chunks_per_contribution) {
  return {space.topology,    space.demand.with_chunks(chunks_per_contribution),
          space.hops,        space.into,
          space.concurrency, space.between,
          space.deadline,    space.relay_bytes};
}

PlanQuality quality_of(const std::vector<PlannedTransfer>& transfers, const PlanSpace& space) {
  PlanQuality quality;
  std::vector<double> taken(space.topology->num_links(), 0);
  std::vector<double> end(taken.size(), 0);
  LinksOnce links(taken.size());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& t = transfers[i];
    const double bytes = space.bytes(t);
    quality.finish_us = std::max(quality.finish_us, space.arrival_us(t));
    if (space.hop(t).changes) {
      const HopTiming timing = space.timing(t);
      for (std::size_t k = 0; k < timing.uses.size(); ++k) {
        const std::size_t l = space.hop(t).links[k].link.index();
        taken[l] += timing.uses[k].end_us - timing.uses[k].start_us;
        end[l] = std::max(end[l], timing.uses[k].end_us);
      }
      continue;
    }
    const int whole = original_of(transfers, i);
    for (const HopLink& part : space.hop(t).links) {
      const std::size_t l = part.link.index();
      if (!links.is_new(whole, part.link)) continue;
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

std::optional<PlannedOrder> order_of(const Schedule& schedule, PlanSpace& space) {
  HopsByPath hops(space);
  PlannedOrder order;
  TransferPlan& plan = order.plan;
  const Transfers transfers = transfers_of(*space.topology, space.demand, schedule.sends);
  std::vector<char> is_used(schedule.sends.size(), 0);
  int before = -1;  // the first send of the transfer before
  int original = -1;
  for (const Delivery& delivery : transfers.deliveries) {
    for (int s = delivery.last_send; s >= 0; s = transfers.continued[index(s)]) is_used[index(s)] = 1;
    const int hop = hops.of(path_of(delivery, transfers, schedule.sends));
    const bool is_copy = delivery.first_send == before;
    if (!is_copy) original = static_cast<int>(plan.transfers.size());
    before = delivery.first_send;
    plan.transfers.push_back(
        {delivery.chunk, hop, delivery.cause, is_copy ? original : -1, delivery.start_us});
    if (!times_equal(space.arrival_us(plan.transfers.back()), delivery.arrival_us)) order.waits = true;
  }
  if (std::ranges::find(is_used, 0) != is_used.end()) return std::nullopt;
  drop_useless(plan, space);
  if (order.waits) part_at_other_rates(plan, space);
  return order;
}

std::optional<TransferPlan> plan_of(const Schedule& schedule, PlanSpace& space) {
  std::optional<PlannedOrder> order = order_of(schedule, space);
  if (!order || order->waits) return std::nullopt;
  order->plan.quality = quality_of(order->plan.transfers, space);
  return std::move(order->plan);
}

Schedule schedule_of(const TransferPlan& plan, const PlanSpace& space) {
  Schedule schedule;
  LinksOnce links(space.topology->num_links());
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const PlannedTransfer& t = plan.transfers[i];
    const auto first = static_cast<std::ptrdiff_t>(schedule.sends.size());
    append_sends(*space.topology, space.hop(t), t.chunk, space.bytes(t), t.start_us, schedule.sends);
    const int whole = original_of(plan.transfers, i);
    const auto copied = std::remove_if(schedule.sends.begin() + first, schedule.sends.end(),
                                       [&](const Send& s) { return !links.is_new(whole, s.link); });
    schedule.sends.erase(copied, schedule.sends.end());
  }
  // Where messages cost, transfers that meet in a switch cannot be told apart without numbers.
  if (space.topology->has_message_costs()) number_transfers(*space.topology, space.demand, schedule.sends);
  schedule.finish_us = plan.quality.finish_us;
  canonicalise(schedule);
  return schedule;
}

std::vector<double> starts_of(const TransferPlan& plan) {
  std::vector<double> starts_us;
  for (const PlannedTransfer& t : plan.transfers) starts_us.push_back(t.start_us);
  return starts_us;
}

TransferPlan split_in_halves(const TransferPlan& plan, const PlanSpace& halves) {
  TransferPlan split;
  split.quality = plan.quality;
  for (const PlannedTransfer& whole : plan.transfers) {
    for (const int half : {0, 1}) {
      PlannedTransfer t = whole;
      t.chunk = ChunkId{2 * whole.chunk.value + half};
      if (whole.cause >= 0) t.cause = 2 * whole.cause + half;
      if (whole.copy_of >= 0) t.copy_of = 2 * whole.copy_of + half;
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
  const std::vector<char> is_needed = needed_deliveries(space.demand, deliveries);
  std::vector<int> originals;  // of what is kept
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    if (is_needed[i] != 0) originals.push_back(original_of(plan.transfers, i));
  }
  keep_marked(plan.transfers, is_needed);
  // The first copy that is kept takes the place of an original that is not.
  int original = -1;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const bool is_copy = i > 0 && originals[i] == originals[i - 1];
    if (!is_copy) original = static_cast<int>(i);
    plan.transfers[i].copy_of = is_copy ? original : -1;
  }
}

}  // namespace rondo
