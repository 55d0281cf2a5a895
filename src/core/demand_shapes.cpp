#include "rondo/core/demand_shapes.hpp"

#include <algorithm>
#include <set>

namespace rondo {

bool is_plain_all_reduce(const Demand& demand) {
  const Contribution& first = demand.contributions().front();
  return std::ranges::all_of(demand.contributions(), [&](const Contribution& c) {
    return c.reduce && c.held.empty() && c.sources == first.sources && c.destinations == c.sources;
  });
}

std::vector<GpuId> members_of(const Demand& demand) {
  std::set<GpuId> members;
  for (const Contribution& c : demand.contributions()) {
    members.insert(c.all_sources().begin(), c.all_sources().end());
    members.insert(c.destinations.begin(), c.destinations.end());
  }
  return {members.begin(), members.end()};
}

bool is_plain_spreading(const Demand& demand) {
  if (demand.has_several_sources()) return false;
  const std::size_t others = members_of(demand).size() - 1;
  return std::ranges::all_of(demand.contributions(),
                             [&](const Contribution& c) { return c.destinations.size() == others; });
}

}  // namespace rondo
