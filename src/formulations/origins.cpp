#include "origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rondo/core/error.hpp"

namespace rondo {

std::vector<Origin> origins_of(const Topology& topology, const Demand& demand, const char* model) {
  if (!demand.is_pairwise()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} carries data with one destination each (AllToAll, Scatter, Gather); this demand is "
                    "multicast",
                    model));
  }
  std::map<GpuId, Origin> origins;
  for (const Contribution& c : demand.contributions()) {
    Origin& origin =
        origins.try_emplace(c.origin, Origin{c.origin, std::vector<double>(topology.num_nodes())})
            .first->second;
    origin.wanted[topology.node_of(c.destinations.front()).index()] += c.bytes;
    origin.ready_us = std::max(origin.ready_us, c.ready_us);
  }
  std::vector<Origin> sorted;
  for (auto& [gpu, origin] : origins) sorted.push_back(std::move(origin));
  return sorted;
}

double mean_contribution_bytes(const Demand& demand) {
  double sum = 0;
  for (const Contribution& c : demand.contributions()) sum += c.bytes;
  return sum / static_cast<double>(demand.contributions().size());
}

}  // namespace rondo
