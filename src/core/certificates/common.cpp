#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kinds.hpp"
#include "rondo/core/error.hpp"

namespace rondo::certificates {

void refuse_certificate(const std::string& message) {
  throw Error(ExitCode::bad_data, "certificate: " + message);
}

double checked_time(double us) {
  if (!std::isfinite(us)) {
    refuse_certificate(
        "the links it counts are down from some time on and never carry all that has to cross; give them "
        "bandwidth_steps that end above 0");
  }
  return us;
}

std::vector<double> latencies(const Topology& topology) {
  std::vector<double> result;
  result.reserve(topology.num_links());
  for (const Link& link : topology.links()) result.push_back(link.latency_us);
  return result;
}

std::vector<NodeId> gpu_nodes(const Topology& topology) {
  std::vector<NodeId> nodes;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) nodes.push_back(topology.node_of(GpuId(g)));
  return nodes;
}

std::vector<double> distances_from_any(Digraph graph, std::vector<double> length,
                                       const std::vector<NodeId>& sources) {
  const int root = graph.num_nodes++;
  for (const NodeId source : sources) graph.arcs.push_back({root, source.value});
  length.resize(graph.arcs.size(), 0);
  std::vector<double> distance = shortest_paths(graph, length, root).distance;
  distance.pop_back();
  return distance;
}

bool for_everybody(const Topology& topology, const Contribution& part) {
  return part.sources.empty() && part.destinations.size() + 1 == topology.num_gpus();
}

std::vector<GpuId> holders_of(const Contribution& part, GpuId source) {
  if (!std::ranges::binary_search(part.all_sources(), source)) return {};
  if (!part.reduce) return {part.all_sources().begin(), part.all_sources().end()};
  std::vector<GpuId> holders;
  bool own = true;
  for (const HeldSum& held : part.held) {
    own = own && held.gpu != source;
    if (std::ranges::binary_search(held.sources, source)) holders.push_back(held.gpu);
  }
  if (own) holders.push_back(source);
  std::ranges::sort(holders);
  return holders;
}

double ready_of_holder(const Contribution& part, GpuId holder) {
  const bool is_told =
      std::ranges::any_of(part.held, [&](const HeldSum& held) { return held.gpu == holder; });
  if (is_told) return 0;
  if (part.source_ready_us.empty()) return part.ready_us;
  const auto sources = part.all_sources();
  const auto at = std::ranges::lower_bound(sources, holder) - sources.begin();
  return part.source_ready_us[static_cast<std::size_t>(at)];
}

bool has_to_leave(const Topology& topology, const Contribution& part, const std::vector<char>& inside) {
  const auto is_inside = [&](GpuId g) { return inside[topology.node_of(g).index()] != 0; };
  if (std::ranges::all_of(part.destinations, is_inside)) return false;
  const auto sources = part.all_sources();
  if (!part.reduce) return std::ranges::all_of(sources, is_inside);
  if (part.held.empty()) return std::ranges::any_of(sources, is_inside);
  return std::ranges::any_of(sources, [&](GpuId source) {
    const std::vector<GpuId> holders = holders_of(part, source);
    return !holders.empty() && std::ranges::all_of(holders, is_inside);
  });
}

}  // namespace rondo::certificates
