#include "rondo/local_search/orbit_plans.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

Demand of_representatives(const Demand& demand, const FreeGroup& group, std::size_t num_gpus) {
  std::vector<Contribution> parts;
  for (const Contribution& part : demand.contributions()) {
    if (group.place(part.origin).element == 0) parts.push_back(part);
  }
  return Demand(Collective::custom, demand.size_bytes(), num_gpus, std::move(parts), 1);
}

PlanSpace without_hops(PlanSpace space) {
  space.hops.clear();
  for (std::vector<int>& into : space.into) into.clear();
  space.between.clear();
  return space;
}

}  // namespace

OrbitPlans::OrbitPlans(const Topology& topology, const Demand& demand, FreeGroup group, int concurrency)
    : topology_(topology),
      demand_(demand.with_chunks(1)),
      group_(std::move(group)),
      contribution_of_(topology.num_gpus(), 0),
      crossed_(
          make_plan_space(topology, of_representatives(demand, group_, topology.num_gpus()), concurrency)),
      space_(without_hops(crossed_)) {
  for (std::size_t i = 0; i < demand_.contributions().size(); ++i)
    contribution_of_[demand_.contributions()[i].origin.index()] = i;
  PlanSpace crossed = space_;
  for (const Hop& hop : crossed_.hops) {
    std::optional<Hop> representative = group_.over_representatives(hop);
    if (!representative) continue;
    crossed.add(hop);
    space_.add(*std::move(representative));
  }
  crossed_ = std::move(crossed);
}

std::optional<PlannedOrder> OrbitPlans::folded(const Schedule& schedule, int chunks) const {
  PlanSpace whole = make_plan_space(topology_, demand_.with_chunks(chunks), space_.concurrency);
  const std::optional<PlannedOrder> order = order_of(schedule, whole);
  const auto is_copy = [](const PlannedTransfer& t) { return t.copy_of >= 0; };
  if (!order || std::ranges::any_of(order->plan.transfers, is_copy)) return std::nullopt;
  std::map<std::vector<LinkId>, int> hop_over;
  for (std::size_t h = 0; h < crossed_.hops.size(); ++h)
    hop_over.emplace(path_of(crossed_.hops[h]), static_cast<int>(h));
  std::map<std::size_t, std::size_t> representative;  // of contributions of the whole demand
  for (std::size_t i = 0; i < space_.demand.contributions().size(); ++i)
    representative.emplace(contribution_of_[space_.demand.contributions()[i].origin.index()], i);
  const auto each = static_cast<std::size_t>(chunks);
  const std::vector<PlannedTransfer>& transfers = order->plan.transfers;
  std::vector<int> position(transfers.size(), -1);
  PlannedOrder some{.plan = {}, .waits = true};
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const auto part = representative.find(transfers[i].chunk.index() / each);
    if (part == representative.end()) continue;
    const auto hop = hop_over.find(path_of(whole.hop(transfers[i])));
    if (hop == hop_over.end()) return std::nullopt;
    const int cause = transfers[i].cause;
    position[i] = static_cast<int>(some.plan.transfers.size());
    some.plan.transfers.push_back({.chunk = ChunkId{part->second * each + transfers[i].chunk.index() % each},
                                   .hop = hop->second,
                                   .cause = cause < 0 ? -1 : position[index(cause)],
                                   .start_us = transfers[i].start_us});
  }
  return some;
}

Schedule OrbitPlans::unfolded(const TransferPlan& plan, int chunks) const {
  const PlanSpace space = with_chunks(crossed_, chunks);
  const auto each = static_cast<std::size_t>(chunks);
  Schedule all;
  for (const Send& send : schedule_of(plan, space).sends) {
    for (int element = 0; element < static_cast<int>(group_.order()); ++element) {
      Send image = send;
      const GpuId origin = group_.image(space.demand.origin(send.chunk), element);
      image.chunk = ChunkId{contribution_of_[origin.index()] * each + send.chunk.index() % each};
      image.link = group_.image(send.link, element);
      all.sends.push_back(image);
    }
    all.finish_us = std::max(all.finish_us, send.arrival_us);
  }
  canonicalise(all);
  return all;
}

}  // namespace rondo
