#include "rondo/pipeline/sharing.hpp"

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {

double Sharing::largest_slowdown() const {
  double largest = 0;
  for (const TenantOutcome& tenant : tenants) largest = std::max(largest, tenant.slowdown());
  return largest;
}

Sharing sharing_of(const Topology& topology, const Demand& demand, const Schedule& schedule,
                   Objective objective, std::vector<TenantOutcome> alone,
                   const std::vector<NodeId>& bound_nodes) {
  const ReplayResult replayed = replay(topology, demand, schedule.sends);
  if (!replayed.valid())
    throw Error(ExitCode::internal,
                "the replay refuses a schedule of several tenants: " + *replayed.violation);
  const std::vector<double> finishes_us = tenant_finishes_us(demand, replayed.contribution_finish_us);
  std::vector<double> crossing_us(alone.size(), 0.0);
  if (!bound_nodes.empty()) crossing_us = crossing_times_us(topology, demand, bound_nodes);
  Sharing sharing{.objective = objective, .weighted_bound_nodes = bound_nodes};
  std::vector<WeighedTenant> weighed;
  for (std::size_t t = 0; t < alone.size(); ++t) {
    TenantOutcome& outcome = alone[t];
    outcome.finish_us = finishes_us[t];
    sharing.weighted_us += outcome.tenant.priority * outcome.finish_us;
    weighed.push_back(
        {outcome.tenant.priority, outcome.tenant.start_us + outcome.lower_bound.us, crossing_us[t]});
  }
  sharing.weighted_bound_us = weighted_bound_us(weighed);
  sharing.tenants = std::move(alone);
  return sharing;
}

}  // namespace rondo
