#include "copy_graph.hpp"

#include <algorithm>

#include "rondo/core/hops.hpp"

namespace rondo {
namespace {

constexpr std::size_t kPathsAPair = 4;
/// Beyond so many GPUs each has hops to some others only.
constexpr std::size_t kManyGpus = 128;
constexpr std::size_t kPeersOfMany = 2;
constexpr std::size_t kPathsOfMany = 2;

}  // namespace

CopyGraph make_copy_graph(const Topology& topology) {
  CopyGraph graph;
  graph.out.resize(topology.num_nodes());
  const auto add = [&](NodeId src, NodeId dst, std::vector<LinkId> links) {
    graph.out[src.index()].push_back(static_cast<int>(graph.arcs.size()));
    graph.arcs.push_back({src, dst, std::move(links)});
  };
  const auto copies = [&](NodeId n) { return topology.is_gpu(n) || topology.node(n).multicast; };
  bool some_do_not = false;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    if (copies(link.src) && copies(link.dst))
      add(link.src, link.dst, {LinkId(l)});
    else
      some_do_not = true;
  }
  if (!some_do_not) return graph;
  const bool many = topology.num_gpus() > kManyGpus;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const auto hops =
        hops_from(topology, GpuId(g), many ? kPathsOfMany : kPathsAPair, many ? kPeersOfMany : kAllPeers);
    for (const Hop& hop : hops) {
      std::vector<LinkId> links;
      for (const HopLink& part : hop.links) links.push_back(part.link);
      const bool passes = std::ranges::any_of(
          links, [&](LinkId l) { return !copies(topology.link(l).src) || !copies(topology.link(l).dst); });
      if (passes) add(topology.node_of(hop.src), topology.node_of(hop.dst), std::move(links));
    }
  }
  return graph;
}

}  // namespace rondo
