#include "rondo/engines/plain_allgather.hpp"

#include <algorithm>
#include <utility>

namespace rondo {

bool is_plain_allgather(const Instance& instance) {
  const Demand& demand = instance.demand;
  const std::size_t gpus = instance.topology->num_gpus();
  if (!instance.topology->shared_bandwidth().empty() || !demand.uniform_chunk_bytes() ||
      demand.contributions().size() != gpus) {
    return false;
  }
  std::vector<char> seen(gpus, 0);
  return std::ranges::all_of(demand.contributions(), [&](const Contribution& c) {
    return c.ready_us == 0 && c.destinations.size() + 1 == gpus && !std::exchange(seen[c.origin.index()], 1);
  });
}

}  // namespace rondo
