#include "orbit_problem.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Contributions sorted so that an automorphism maps the k-th of an origin and a destination to the k-th of
/// their images.
class ContributionIndex {
 public:
  explicit ContributionIndex(const Demand& demand) : demand_(demand), order_(demand.contributions().size()) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(key(a), demand_.contributions()[a].bytes, demand_.contributions()[a].ready_us, a) <
             std::tuple(key(b), demand_.contributions()[b].bytes, demand_.contributions()[b].ready_us, b);
    });
    rank_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const bool same = i > 0 && key(order_[i]) == key(order_[i - 1]);
      rank_[order_[i]] = same ? rank_[order_[i - 1]] + 1 : 0;
    }
  }

  std::uint32_t image(std::size_t contribution, const FreeGroup& group, int element) const {
    const Contribution& c = demand_.contributions()[contribution];
    const std::pair wanted{group.image(c.origin, element), group.image(c.destinations.front(), element)};
    const auto first = std::lower_bound(order_.begin(), order_.end(), wanted,
                                        [&](std::uint32_t i, const auto& pair) { return key(i) < pair; });
    return *(first + rank_[contribution]);
  }

 private:
  std::pair<GpuId, GpuId> key(std::uint32_t i) const {
    const Contribution& c = demand_.contributions()[i];
    return {c.origin, c.destinations.front()};
  }

  const Demand& demand_;
  std::vector<std::uint32_t> order_;
  std::vector<std::ptrdiff_t> rank_;  ///< among those of the same ends
};

/// Links that share bandwidth, replaced by their representatives, once each.
Topology with_representative_groups(const Topology& topology, const FreeGroup& group) {
  if (topology.shared_bandwidth().empty()) return topology;
  TopologyData data = topology.data();
  std::set<std::pair<std::vector<LinkId>, double>> known;
  data.shared_bandwidth.clear();
  for (SharedBandwidth shared : topology.shared_bandwidth()) {
    for (LinkId& l : shared.links) l = group.link(group.place(l).orbit, 0);
    std::sort(shared.links.begin(), shared.links.end());
    if (known.emplace(shared.links, shared.bandwidth_GBps).second)
      data.shared_bandwidth.push_back(std::move(shared));
  }
  return Topology(std::move(data));
}

std::vector<LinkId> links_of(const Hop& hop) {
  std::vector<LinkId> links;
  for (const HopLink& part : hop.links) links.push_back(part.link);
  return links;
}

/// Per contribution, whether hops lead from its origin to its destination.
bool all_connected(const Demand& demand, const Topology& topology, const std::vector<Hop>& hops) {
  Digraph graph{static_cast<int>(topology.num_gpus()), {}};
  for (const Hop& hop : hops) graph.arcs.push_back({hop.src.value, hop.dst.value});
  const std::vector<double> length(graph.arcs.size(), 1);
  std::map<GpuId, ShortestPaths> from;
  return std::all_of(demand.contributions().begin(), demand.contributions().end(),
                     [&](const Contribution& c) {
                       auto [entry, is_new] = from.try_emplace(c.origin);
                       if (is_new) entry->second = shortest_paths(graph, length, c.origin.value);
                       return entry->second.last_arc[c.destinations.front().index()] >= 0;
                     });
}

}  // namespace

OrbitProblem orbit_problem(const Topology& topology, const Demand& demand, FreeGroup group) {
  std::vector<Contribution> chosen;
  std::vector<std::size_t> number;  // in the whole
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& c = demand.contributions()[i];
    if (group.place(c.origin).element != 0) continue;
    chosen.push_back(c);
    number.push_back(i);
  }
  const ContributionIndex index(demand);
  std::vector<std::vector<std::uint32_t>> images(group.order());
  for (std::size_t e = 0; e < group.order(); ++e) {
    for (const std::size_t i : number) images[e].push_back(index.image(i, group, static_cast<int>(e)));
  }
  Topology reduced = with_representative_groups(topology, group);
  return {std::move(group), std::move(reduced),
          Demand(Collective::custom, demand.size_bytes(), demand.num_gpus(), std::move(chosen), 1),
          std::move(images)};
}

std::optional<OrbitRoutes> orbit_routes(const OrbitProblem& problem, const RouteTable& table,
                                        OrbitMeetings meetings) {
  OrbitRoutes routes;
  std::vector<int> kept(table.hops.size(), -1);
  for (std::size_t h = 0; h < table.hops.size(); ++h) {
    Hop hop = table.hops[h];
    for (HopLink& part : hop.links) part.link = problem.representative(part.link);
    const std::vector<LinkId> links = links_of(hop);
    const bool meets_images = std::set<LinkId>(links.begin(), links.end()).size() < links.size();
    if (meetings == OrbitMeetings::none && meets_images) continue;
    kept[h] = static_cast<int>(routes.real.hops.size());
    routes.real.hops.push_back(table.hops[h]);
    routes.representatives.hops.push_back(std::move(hop));
  }
  if (!all_connected(problem.demand, problem.topology, routes.real.hops)) return std::nullopt;
  for (const std::vector<Route>& of_contribution : table.of_contribution) {
    std::vector<Route>& good = routes.representatives.of_contribution.emplace_back();
    for (Route route : of_contribution) {
      for (int& h : route.hops) h = kept[static_cast<std::size_t>(h)];
      if (std::find(route.hops.begin(), route.hops.end(), -1) == route.hops.end())
        good.push_back(std::move(route));
    }
  }
  return routes;
}

RoutedChunks merge_hops(const RouteTable& representatives, const RoutedChunks& routed) {
  RoutedChunks merged = routed;
  std::map<std::vector<LinkId>, int> first;
  for (Route& route : merged.routes) {
    for (int& h : route.hops)
      h = first.try_emplace(links_of(representatives.hops[static_cast<std::size_t>(h)]), h).first->second;
  }
  return merged;
}

Schedule images_of(const Schedule& part, const OrbitProblem& problem, int chunks) {
  const auto each = static_cast<std::size_t>(chunks);
  const std::size_t order = problem.group.order();
  Schedule schedule;
  schedule.finish_us = part.finish_us;
  schedule.sends.reserve(part.sends.size() * order);
  for (Send send : part.sends) {
    const std::size_t chunk = send.chunk.index();
    const LinkId link = send.link;
    const std::int32_t transfer = send.transfer;
    for (std::size_t e = 0; e < order; ++e) {
      send.chunk = ChunkId{problem.images[e][chunk / each] * each + chunk % each};
      send.link = problem.group.image(link, static_cast<int>(e));
      if (transfer != kNoTransfer)
        send.transfer = transfer * static_cast<std::int32_t>(order) + static_cast<std::int32_t>(e);
      schedule.sends.push_back(send);
    }
  }
  canonicalise(schedule);
  return schedule;
}

}  // namespace rondo
