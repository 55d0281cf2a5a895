#pragma once

#include <string>
#include <vector>

#include "rondo/pipeline/sharing.hpp"

/// In which order the transfers of several tenants go where they meet.
namespace rondo {

/// How far a tenant's transfers come behind: by its place first, and within a place by time from its start,
/// times `scale`.
struct TenantTurn {
  int place = 0;
  double scale = 1;
};
struct TenantOrder {
  std::string name;
  std::vector<TenantTurn> turns;  ///< per tenant
};

/// Blind, in proportion to what each takes alone, in turn by several rules, and the first ones in turn with
/// the rest in proportion. `tenants`: their starts, priorities and times alone count.
std::vector<TenantOrder> first_orders(const std::vector<TenantOutcome>& tenants);

/// The same order with the places of two tenants exchanged: of any two, with many tenants of neighbours
/// alone.
std::vector<TenantOrder> exchanges(const TenantOrder& order);

}  // namespace rondo
