#include "lifting.hpp"

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

  std::uint32_t image(std::size_t contribution, const Topology& topology, const Permutation& p) const {
    const auto of = [&](GpuId g) { return topology.gpu_of(p.node[topology.node_of(g).index()]); };
    const Contribution& c = demand_.contributions()[contribution];
    const std::pair wanted{of(c.origin), of(c.destinations.front())};
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

/// One group for all that fold alike, over representative links.
Topology with_folded_groups(const Topology& topology, const std::vector<LinkId>& fold) {
  if (topology.shared_bandwidth().empty()) return topology;
  TopologyData data = topology.data();
  std::set<std::pair<std::vector<LinkId>, double>> known;
  data.shared_bandwidth.clear();
  for (SharedBandwidth group : topology.shared_bandwidth()) {
    for (LinkId& l : group.links) l = fold[l.index()];
    std::sort(group.links.begin(), group.links.end());
    if (known.emplace(group.links, group.bandwidth_GBps).second)
      data.shared_bandwidth.push_back(std::move(group));
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

FoldedProblem fold_problem(const Topology& topology, const Demand& demand,
                           std::vector<Permutation> rotations) {
  std::vector<LinkId> fold;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    LinkId least{l};
    for (const Permutation& p : rotations) least = std::min(least, p.link[l]);
    fold.push_back(least);
  }
  std::vector<char> represents(topology.num_gpus(), 1);
  for (std::size_t g = 0; g < represents.size(); ++g) {
    const NodeId node = topology.node_of(GpuId{g});
    for (const Permutation& p : rotations) {
      if (p.node[node.index()] < node) represents[g] = 0;
    }
  }
  std::vector<Contribution> chosen;
  std::vector<std::size_t> number;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& c = demand.contributions()[i];
    if (!represents[c.origin.index()]) continue;
    chosen.push_back(c);
    number.push_back(i);
  }
  const ContributionIndex index(demand);
  std::vector<std::vector<std::uint32_t>> images;
  for (const Permutation& p : rotations) {
    std::vector<std::uint32_t>& of_rotation = images.emplace_back();
    for (const std::size_t i : number) of_rotation.push_back(index.image(i, topology, p));
  }
  Topology folded = with_folded_groups(topology, fold);
  return {std::move(rotations),
          std::move(folded),
          std::move(fold),
          Demand(Collective::custom, demand.size_bytes(), demand.num_gpus(), std::move(chosen), 1),
          std::move(number),
          std::move(images)};
}

std::optional<FoldedRoutes> fold_routes(const FoldedProblem& problem, const RouteTable& table) {
  FoldedRoutes routes;
  std::vector<int> kept(table.hops.size(), -1);
  for (std::size_t h = 0; h < table.hops.size(); ++h) {
    Hop folded = table.hops[h];
    for (HopLink& part : folded.links) part.link = problem.fold[part.link.index()];
    const std::vector<LinkId> links = links_of(folded);
    if (std::set<LinkId>(links.begin(), links.end()).size() < links.size()) continue;
    kept[h] = static_cast<int>(routes.real.hops.size());
    routes.real.hops.push_back(table.hops[h]);
    routes.folded.hops.push_back(std::move(folded));
  }
  if (!all_connected(problem.demand, problem.topology, routes.real.hops)) return std::nullopt;
  for (const std::vector<Route>& of_contribution : table.of_contribution) {
    std::vector<Route>& good = routes.folded.of_contribution.emplace_back();
    for (Route route : of_contribution) {
      for (int& h : route.hops) h = kept[static_cast<std::size_t>(h)];
      if (std::find(route.hops.begin(), route.hops.end(), -1) == route.hops.end())
        good.push_back(std::move(route));
    }
  }
  return routes;
}

RoutedChunks merge_hops(const RouteTable& folded, const RoutedChunks& routed) {
  RoutedChunks merged = routed;
  std::map<std::vector<LinkId>, int> first;
  for (Route& route : merged.routes) {
    for (int& h : route.hops)
      h = first.try_emplace(links_of(folded.hops[static_cast<std::size_t>(h)]), h).first->second;
  }
  return merged;
}

Schedule unfold(const FoldedProblem& problem, const Topology& topology, const Demand& whole,
                const Demand& part, const std::vector<Hop>& hops, const RoutedChunks& routed,
                const RouteStarts& starts) {
  const auto chunks = static_cast<std::size_t>(whole.chunks_per_contribution());
  Schedule schedule;
  schedule.finish_us = starts.finish_us;
  std::size_t sends = 0;
  const auto hop_of = [&](const RouteStart& start) -> const Hop& {
    const auto route = static_cast<std::size_t>(routed.route_of_chunk[static_cast<std::size_t>(start.chunk)]);
    return hops[static_cast<std::size_t>(routed.routes[route].hops[start.position])];
  };
  for (const RouteStart& start : starts.starts) sends += hop_of(start).links.size();
  schedule.sends.reserve(sends * problem.rotations.size());
  std::vector<Send> own;
  for (const RouteStart& start : starts.starts) {
    const auto chunk = static_cast<std::size_t>(start.chunk);
    own.clear();
    append_sends(topology, hop_of(start), ChunkId{chunk}, part.bytes(ChunkId{chunk}), start.start_us, own);
    for (std::size_t r = 0; r < problem.rotations.size(); ++r) {
      const ChunkId image{problem.images[r][chunk / chunks] * chunks + chunk % chunks};
      for (Send send : own) {
        send.chunk = image;
        send.link = problem.rotations[r].link[send.link.index()];
        schedule.sends.push_back(send);
      }
    }
  }
  canonicalise(schedule);
  return schedule;
}

}  // namespace rondo
