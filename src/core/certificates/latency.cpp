#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kinds.hpp"

namespace rondo::certificates {
namespace {

/// The GPUs that hold at first what `source` brings to `part`, ascending: in a sum its own data, else the
/// data that all sources have.
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

}  // namespace

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
