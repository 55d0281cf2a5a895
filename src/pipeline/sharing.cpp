#include "rondo/pipeline/sharing.hpp"

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "weighted_cut.hpp"

namespace rondo {

double Sharing::largest_slowdown() const {
  double largest = 0;
  for (const TenantOutcome& tenant : tenants) largest = std::max(largest, tenant.slowdown());
  return largest;
}

Sharing sharing_of(const Topology& topology, const Demand& demand, const Schedule& schedule,
                   Objective objective, std::vector<TenantOutcome> alone,
                   const std::vector<std::vector<NodeId>>& bound_nodes) {
  const ReplayResult replayed = replay(topology, demand, schedule.sends);
  if (!replayed.valid())
    throw Error(ExitCode::internal,
                "the replay refuses a schedule of several tenants: " + *replayed.violation);
  const std::vector<double> finishes_us = tenant_finishes_us(demand, replayed.contribution_finish_us);
  Sharing sharing{.objective = objective, .weighted_bound_nodes = bound_nodes};
  for (std::size_t t = 0; t < alone.size(); ++t) {
    TenantOutcome& outcome = alone[t];
    outcome.finish_us = finishes_us[t];
    sharing.weighted_us += outcome.tenant.priority * outcome.finish_us;
  }
  sharing.weighted_bound_us = weighted_bound(weighed(topology, demand, alone, bound_nodes)).us;
  sharing.tenants = std::move(alone);
  return sharing;
}

}  // namespace rondo
