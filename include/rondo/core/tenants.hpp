#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"

/// Several collectives over one fabric at once: the contributions of a demand say whose they are.
namespace rondo {

/// Of one of them.
struct Tenant {
  int number = 0;
  double priority = 1;
  double start_us = 0;  ///< when the first of its data is ready
};

/// Ascending by number; one where nobody shares the fabric.
std::vector<Tenant> tenants_of(const Demand& demand);

/// What the tenant asks for, as if it had the fabric to itself: a custom demand of tenant 0, with time 0 at
/// the tenant's start.
Demand demand_of_tenant(const Demand& demand, const Tenant& tenant);

/// Per tenant of tenants_of() when it is served, of what ReplayResult says of contributions.
std::vector<double> tenant_finishes_us(const Demand& demand, std::span<const double> contribution_finish_us);

/// A tenant in a bound of the weighted sum.
struct WeighedTenant {
  double priority = 1;
  double least_us = 0;  ///< it ends no earlier, alone
  /// Per set of nodes its bytes that have to leave the set, over the bandwidth that leaves it; as many as the
  /// other tenants have.
  std::vector<double> crossing_us = {};
};

struct WeightedBound {
  double us = 0;
  std::vector<std::size_t> order;  ///< of tenants that end as early as the bound lets them
};

/// No schedule has a smaller sum of priority x finish: whoever ends k-th, all bytes of the first k have left
/// each set by then, and each ends no earlier than alone. The least over all orders; beyond 12 tenants the
/// greatest of what the times alone and each set by itself prove (for a set Smith's rule, Naval Research
/// Logistics Quarterly 3, 1956).
WeightedBound weighted_bound(std::span<const WeighedTenant> tenants);

/// Per tenant of tenants_of() the least time in us that its bytes need to leave (of sums for one GPU each: to
/// enter) `nodes`, ascending, over the links there, without latency; at the greatest bandwidth that each ever
/// has. Throws Error(bad_data) for node ids out of range.
std::vector<double> crossing_times_us(const Topology& topology, const Demand& demand,
                                      std::span<const NodeId> nodes);

}  // namespace rondo
