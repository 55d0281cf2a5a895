#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "carriers.hpp"
#include "kinds.hpp"
#include "rondo/core/make_set.hpp"

namespace rondo::certificates {
namespace {

/// The distinct sets of GPUs outside S that want something which has to leave S.
std::vector<std::vector<GpuId>> audiences(const Topology& topology, const Demand& demand,
                                          const std::vector<char>& inside) {
  std::vector<GpuId> all_outside;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (!inside[topology.node_of(GpuId(g)).index()]) all_outside.push_back(GpuId(g));
  }
  std::vector<std::vector<GpuId>> sets;
  for (const Contribution& part : demand.contributions()) {
    std::vector<GpuId> outside;
    if (for_everybody(topology, part)) {
      if (!inside[topology.node_of(part.origin).index()]) continue;
      if (!sets.empty() && sets.back() == all_outside) continue;
      outside = all_outside;
    } else {
      if (!has_to_leave(topology, part, inside)) continue;
      for (const GpuId g : part.destinations) {
        if (!inside[topology.node_of(g).index()]) outside.push_back(g);
      }
    }
    // Most often all that originates in S has the same audience.
    if (!outside.empty() && (sets.empty() || sets.back() != outside)) sets.push_back(std::move(outside));
  }
  make_set(sets);
  return sets;
}

/// min q_e over `leaving`: what remains to be done once a byte has entered its link out of S, if all that
/// becomes of it has left over that link.
double tail_of_one_link_us(const Topology& topology, const std::vector<double>& latency,
                           const std::vector<LinkId>& leaving,
                           const std::vector<std::vector<GpuId>>& audiences) {
  std::map<NodeId, double> least_latency;  // per head of a leaving link
  for (const LinkId l : leaving) {
    const auto [it, added] = least_latency.try_emplace(topology.link(l).dst, latency[l.index()]);
    if (!added) it->second = std::min(it->second, latency[l.index()]);
  }
  ShortestPathSearch search(topology.graph());
  search.set_lengths(latency);
  double least = kUnreachable;
  for (const auto& [head, latency_us] : least_latency) {
    const std::vector<double> distance = search.from(head.value).distance;
    for (const std::vector<GpuId>& audience : audiences) {
      double farthest = 0;
      for (const GpuId g : audience) farthest = std::max(farthest, distance[topology.node_of(g).index()]);
      least = std::min(least, latency_us + farthest);
    }
  }
  return least;
}

/// The same where copies of the last byte may leave over several links, each nearest to its own destination:
/// least over chunks of the greatest over destinations of the least over links.
double sound_tail_us(const Topology& topology, const std::vector<double>& latency,
                     const std::vector<LinkId>& leaving, const std::vector<std::vector<GpuId>>& audiences) {
  Digraph graph = topology.graph();
  std::vector<double> length = latency;
  const int root = graph.num_nodes++;
  for (const LinkId l : leaving) {
    graph.arcs.push_back({root, topology.link(l).dst.value});
    length.push_back(latency[l.index()]);
  }
  const std::vector<double> distance = shortest_paths(graph, length, root).distance;
  double least = kUnreachable;
  for (const std::vector<GpuId>& audience : audiences) {
    double farthest = 0;
    for (const GpuId g : audience) farthest = std::max(farthest, distance[topology.node_of(g).index()]);
    least = std::min(least, farthest);
  }
  return least;
}

double tail_us(const Topology& topology, const Demand& demand, const std::vector<char>& inside,
               const std::vector<LinkId>& leaving, Tail tail) {
  const std::vector<double> latency = latencies(topology);
  if (demand.is_unicast()) {
    double least = kUnreachable;
    for (const LinkId l : leaving) least = std::min(least, latency[l.index()]);
    return least;
  }
  const std::vector<std::vector<GpuId>> wanted_by = audiences(topology, demand, inside);
  const bool of_one_link = tail == Tail::of_one_link && !demand.has_several_sources();
  return of_one_link ? tail_of_one_link_us(topology, latency, leaving, wanted_by)
                     : sound_tail_us(topology, latency, leaving, wanted_by);
}

/// One flag a node. Checks the ids.
std::vector<char> flags_of(const Topology& topology, const CutCertificate& cut) {
  std::vector<char> inside(topology.num_nodes(), 0);
  for (const NodeId n : cut.nodes) {
    if (!n.valid() || n.index() >= topology.num_nodes()) {
      refuse_certificate(fmt::format("node {} of the cut does not exist; nodes are 0 to {}", n.value,
                                     topology.num_nodes() - 1));
    }
    inside[n.index()] = 1;
  }
  return inside;
}

}  // namespace

double bound(const Topology& topology, const Demand& demand, const CutCertificate& cut, Tail tail,
             double piece_bytes) {
  const std::vector<char> inside = flags_of(topology, cut);
  const double bytes = bytes_leaving(topology, demand, inside);
  if (!(bytes > 0))
    refuse_certificate("no byte has to leave the cut; it has to separate data from a GPU that wants it");
  if (!(std::abs(cut.bytes - bytes) <= 1e-9 * bytes)) {
    refuse_certificate(
        fmt::format("{} bytes are said to leave the cut; the demand gives {}", cut.bytes, bytes));
  }

  std::vector<NodeId> sources;
  for (const NodeId n : gpu_nodes(topology)) {
    if (inside[n.index()]) sources.push_back(n);
  }
  const std::vector<double> reached_us = distances_from_any(topology.graph(), latencies(topology), sources);
  std::vector<LinkId> leaving;
  Carriers carriers;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    const double from_us = reached_us[link.src.index()];
    if (!inside[link.src.index()] || inside[link.dst.index()] || from_us == kUnreachable) continue;
    leaving.push_back(LinkId(l));
    carriers.add(link, from_us);
  }
  const double behind_us = tail_us(topology, demand, inside, leaving, tail);
  if (behind_us == kUnreachable) {
    refuse_certificate(
        "no link out of the cut leads from a GPU inside to all GPUs outside that want the same data");
  }
  const double us = piece_bytes > 0 ? carriers.time_for_whole(bytes, piece_bytes) : carriers.time_for(bytes);
  return checked_time(us) + behind_us;
}

}  // namespace rondo::certificates
