#include "last_resort.hpp"

#include "rondo/core/relay_memory.hpp"

namespace rondo {
namespace {

/// Of a delivery over several hops.
constexpr double kSendsOfDelivery = 10;

}  // namespace

LastResort last_resort(const Problem& problem) {
  const Topology& topology = *problem.topology;
  // From every GPU straight to every other takes a tenth of list scheduling's time, and data of pairs end
  // about as soon.
  const bool goes_straight = problem.demand.is_unicast() && !topology.has_bandwidth_steps() &&
                             !has_limited_relays(topology, problem.demand);
  if (goes_straight) return {"direct", kSendsOfDelivery * problem.demand.num_deliveries()};
  return {"list", 0};
}

}  // namespace rondo
