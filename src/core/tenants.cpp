#include "rondo/core/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// Of which all orders are gone through, set by set.
constexpr std::size_t kMostOrdered = 12;

double first_ready_us(const Contribution& contribution) {
  if (contribution.source_ready_us.empty()) return contribution.ready_us;
  return *std::ranges::min_element(contribution.source_ready_us);
}

/// Per set of tenants, as bits, the earliest time at which all of them can have ended.
std::vector<double> earliest_ends(std::span<const WeighedTenant> tenants) {
  const std::size_t num_sets = std::size_t{1} << tenants.size();
  std::vector<double> ends_us(num_sets, 0);
  const auto without_first = [](std::size_t set) { return set & (set - 1); };
  const auto first = [](std::size_t set) { return static_cast<std::size_t>(std::countr_zero(set)); };
  for (std::size_t set = 1; set < num_sets; ++set)
    ends_us[set] = std::max(ends_us[without_first(set)], tenants[first(set)].least_us);
  std::vector<double> crossing_us(num_sets, 0);
  for (std::size_t cut = 0; cut < tenants.front().crossing_us.size(); ++cut) {
    for (std::size_t set = 1; set < num_sets; ++set) {
      crossing_us[set] = crossing_us[without_first(set)] + tenants[first(set)].crossing_us[cut];
      ends_us[set] = std::max(ends_us[set], crossing_us[set]);
    }
  }
  return ends_us;
}

/// Over all orders, by dynamic programming over the sets of those that have ended.
WeightedBound least_over_orders(std::span<const WeighedTenant> tenants) {
  const std::vector<double> ends_us = earliest_ends(tenants);
  std::vector<double> least(ends_us.size(), std::numeric_limits<double>::infinity());
  std::vector<std::size_t> last(ends_us.size(), 0);
  least[0] = 0;
  for (std::size_t set = 1; set < ends_us.size(); ++set) {
    for (std::size_t t = 0; t < tenants.size(); ++t) {
      if ((set >> t & 1) == 0) continue;
      const double sum = least[set & ~(std::size_t{1} << t)] + tenants[t].priority * ends_us[set];
      if (sum >= least[set]) continue;
      least[set] = sum;
      last[set] = t;
    }
  }
  WeightedBound bound{least.back(), {}};
  for (std::size_t set = ends_us.size() - 1; set != 0; set &= ~(std::size_t{1} << last[set]))
    bound.order.push_back(last[set]);
  std::ranges::reverse(bound.order);
  return bound;
}

WeightedBound by_smiths_rule(std::span<const WeighedTenant> tenants, std::size_t cut) {
  WeightedBound bound{0, std::vector<std::size_t>(tenants.size())};
  std::iota(bound.order.begin(), bound.order.end(), std::size_t{0});
  std::ranges::stable_sort(bound.order, [&](std::size_t a, std::size_t b) {
    return tenants[a].priority * tenants[b].crossing_us[cut] >
           tenants[b].priority * tenants[a].crossing_us[cut];
  });
  double at_us = 0;
  for (const std::size_t t : bound.order) {
    at_us += tenants[t].crossing_us[cut];
    bound.us += tenants[t].priority * at_us;
  }
  return bound;
}

}  // namespace

std::vector<Tenant> tenants_of(const Demand& demand) {
  std::map<int, Tenant> tenants;
  for (const Contribution& c : demand.contributions()) {
    const double ready_us = first_ready_us(c);
    Tenant& tenant = tenants.try_emplace(c.tenant, Tenant{c.tenant, c.priority, ready_us}).first->second;
    tenant.start_us = std::min(tenant.start_us, ready_us);
  }
  std::vector<Tenant> result;
  for (const auto& [number, tenant] : tenants) result.push_back(tenant);
  return result;
}

Demand demand_of_tenant(const Demand& demand, const Tenant& tenant) {
  std::vector<Contribution> own;
  double bytes = 0;
  for (const Contribution& c : demand.contributions()) {
    if (c.tenant != tenant.number) continue;
    Contribution& part = own.emplace_back(c);
    part.tenant = 0;
    part.priority = 1;
    part.ready_us = std::max(0.0, part.ready_us - tenant.start_us);
    for (double& ready_us : part.source_ready_us) ready_us -= tenant.start_us;
    if (std::ranges::all_of(part.source_ready_us, [](double us) { return us == 0; })) {
      if (!part.source_ready_us.empty()) part.ready_us = 0;
      part.source_ready_us.clear();
    }
    bytes += c.bytes;
  }
  return Demand(Collective::custom, bytes, demand.num_gpus(), std::move(own),
                demand.chunks_per_contribution());
}

std::vector<double> tenant_finishes_us(const Demand& demand, std::span<const double> contribution_finish_us) {
  std::map<int, double> finishes;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    double& last_us = finishes[demand.contributions()[i].tenant];
    last_us = std::max(last_us, contribution_finish_us[i]);
  }
  std::vector<double> result;
  for (const auto& [number, finish_us] : finishes) result.push_back(finish_us);
  return result;
}

WeightedBound weighted_bound(std::span<const WeighedTenant> tenants) {
  if (tenants.empty()) return {};
  if (tenants.size() <= kMostOrdered) return least_over_orders(tenants);
  WeightedBound best{0, std::vector<std::size_t>(tenants.size())};
  std::iota(best.order.begin(), best.order.end(), std::size_t{0});
  std::ranges::stable_sort(best.order, {}, [&](std::size_t t) { return tenants[t].least_us; });
  for (const WeighedTenant& tenant : tenants) best.us += tenant.priority * tenant.least_us;
  for (std::size_t cut = 0; cut < tenants.front().crossing_us.size(); ++cut) {
    if (WeightedBound one = by_smiths_rule(tenants, cut); one.us > best.us) best = std::move(one);
  }
  return best;
}

std::vector<double> crossing_times_us(const Topology& topology, const Demand& demand,
                                      std::span<const NodeId> nodes) {
  std::vector<char> inside(topology.num_nodes(), 0);
  for (const NodeId n : nodes) {
    if (!n.valid() || n.index() >= topology.num_nodes())
      refuse(fmt::format("node {} does not exist; nodes are 0 to {}", n.value, topology.num_nodes() - 1));
    inside[n.index()] = 1;
  }
  double leaving_GBps = 0;
  double entering_GBps = 0;
  for (const Link& link : topology.links()) {
    const bool from = inside[link.src.index()] != 0;
    const bool to = inside[link.dst.index()] != 0;
    if (from && !to) leaving_GBps += greatest_GBps(link);
    if (!from && to) entering_GBps += greatest_GBps(link);
  }
  std::vector<double> times_us;
  for (const Tenant& tenant : tenants_of(demand)) {
    const Demand own = demand_of_tenant(demand, tenant);
    const double GBps = own.kind() == DemandKind::reduction ? entering_GBps : leaving_GBps;
    const double bytes = bytes_leaving(topology, own, inside);
    times_us.push_back(bytes > 0 && GBps > 0 ? transmission_us(bytes, GBps) : 0);
  }
  return times_us;
}

}  // namespace rondo
