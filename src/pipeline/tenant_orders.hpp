#pragma once

#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/pipeline/sharing.hpp"

/// In which order the transfers of several tenants go where they meet.
namespace rondo {

/// How far a tenant's transfers come behind: by its place first, and within a place by time from its start,
/// times `scale`.
struct TenantTurn {
  int place = 0;
  double scale = 1;
};
enum class TenantPlacing {
  as_they_come,  ///< a link is given to the first that waits for it
  /// By place, each tenant keeps its own times from as early on as no link is still to be used by those
  /// before: what needs several links at once does not wait for gaps that smaller transfers fill.
  behind,
  /// By place, each transfer as early as those of the tenants before, which stay, leave its links free.
  inserted,
  rerouted  ///< inserted, and each over the hop on which it arrives first
};
struct TenantOrder {
  std::string name;
  std::vector<TenantTurn> turns;  ///< per tenant
  TenantPlacing placing = TenantPlacing::as_they_come;
};

/// Blind, in proportion to what each takes alone, in turn and behind each other by several rules, and the
/// first ones in turn with the rest in proportion. `tenants`: their starts, priorities and times alone count.
/// `by_bound`: one of the rules, the order in which a bound lets them end.
std::vector<TenantOrder> first_orders(const std::vector<TenantOutcome>& tenants,
                                      const std::vector<std::size_t>& by_bound);

/// The same order with the places of two tenants exchanged: of any two, with many tenants of neighbours
/// alone.
std::vector<TenantOrder> exchanges(const TenantOrder& order);

/// Of an order that has tenants behind each other: the sends, later by tenant. `tenant_of`: per send the
/// position of its tenant.
std::vector<Send> one_behind_another(const Topology& topology, const TenantOrder& order,
                                     std::vector<Send> sends, const std::vector<std::size_t>& tenant_of);

/// Of an order that inserts tenants: `sends` in the order of `keys`, one a send, with `rerouted` over other
/// hops as well. Throws Error(unavailable) for sums and for what waits in switches.
Schedule inserted(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                  const std::vector<double>& keys, int concurrency, bool rerouted = false);

}  // namespace rondo
