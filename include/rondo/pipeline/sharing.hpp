#pragma once

#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/tenants.hpp"
#include "rondo/pipeline/options.hpp"

/// How several tenants fare in one schedule.
namespace rondo {

struct TenantOutcome {
  Tenant tenant;
  double finish_us = 0;
  LowerBound lower_bound = {};  ///< from the tenant's start on, of its demand alone (demand_of_tenant)
  double alone_us = 0;          ///< of the best schedule known for the tenant alone, from its start on
  std::string alone_by = {};    ///< that made it

  double slowdown() const { return (finish_us - tenant.start_us) / alone_us; }
};

struct Sharing {
  Objective objective = Objective::finish;
  std::vector<TenantOutcome> tenants = {};
  double weighted_us = 0;  ///< sum of priority x finish
  double weighted_bound_us = 0;
  /// Whose cuts the bound takes (weighted_bound() in core/tenants.hpp); none where they add nothing.
  std::vector<std::vector<NodeId>> weighted_bound_nodes = {};

  double largest_slowdown() const;
};

/// The figures of a schedule that the replay accepts; `alone` has one outcome a tenant of the demand, whose
/// finish is taken from the schedule. Throws Error(internal) where the replay refuses it.
Sharing sharing_of(const Topology& topology, const Demand& demand, const Schedule& schedule,
                   Objective objective, std::vector<TenantOutcome> alone,
                   const std::vector<std::vector<NodeId>>& bound_nodes);

}  // namespace rondo
