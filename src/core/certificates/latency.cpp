#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kinds.hpp"

namespace rondo::certificates {

double bound(const Topology& topology, const Demand& demand, const LatencyCertificate& pair) {
  for (const GpuId g : {pair.source, pair.destination}) {
    if (!g.valid() || g.index() >= topology.num_gpus()) {
      refuse_certificate(
          fmt::format("GPU {} does not exist; GPUs are 0 to {}", g.value, topology.num_gpus() - 1));
    }
  }
  std::map<std::vector<GpuId>, double> distances;  // by holders
  for (const Contribution& part : demand.contributions()) {
    if (!std::ranges::binary_search(part.destinations, pair.destination)) continue;
    const std::vector<GpuId> holders = holders_of(part, pair.source);
    if (holders.empty() || std::ranges::binary_search(holders, pair.destination)) continue;
    const auto [entry, is_new] = distances.try_emplace(holders, 0.0);
    if (!is_new) continue;
    std::vector<NodeId> from;
    for (const GpuId g : holders) from.push_back(topology.node_of(g));
    entry->second = distances_from_any(topology.graph(), latencies(topology),
                                       from)[topology.node_of(pair.destination).index()];
  }
  if (distances.empty()) {
    refuse_certificate(
        fmt::format("GPU {} sends nothing to GPU {}; a latency bound needs a pair that exchanges data",
                    pair.source.value, pair.destination.value));
  }
  return std::ranges::max_element(distances, {}, [](const auto& d) { return d.second; })->second;
}

}  // namespace rondo::certificates
