#include "rondo/core/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

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

double greatest_GBps(const Link& link) {
  double most = link.bandwidth_GBps;
  for (const BandwidthStep& step : link.bandwidth_steps) most = std::max(most, step.GBps);
  return most;
}

/// Over all orders, by dynamic programming over the sets of those that have ended.
double least_over_orders(std::span<const WeighedTenant> tenants) {
  const std::size_t num_sets = std::size_t{1} << tenants.size();
  std::vector<double> least(num_sets, std::numeric_limits<double>::infinity());
  least[0] = 0;
  for (std::size_t set = 1; set < num_sets; ++set) {
    double end_us = 0;
    double crossing_us = 0;
    for (std::size_t t = 0; t < tenants.size(); ++t) {
      if ((set >> t & 1) == 0) continue;
      end_us = std::max(end_us, tenants[t].least_us);
      crossing_us += tenants[t].crossing_us;
    }
    end_us = std::max(end_us, crossing_us);
    for (std::size_t t = 0; t < tenants.size(); ++t) {
      const std::size_t before = set & ~(std::size_t{1} << t);
      if (before != set) least[set] = std::min(least[set], least[before] + tenants[t].priority * end_us);
    }
  }
  return least.back();
}

double by_smiths_rule(std::span<const WeighedTenant> tenants) {
  std::vector<std::size_t> order(tenants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return tenants[a].priority * tenants[b].crossing_us > tenants[b].priority * tenants[a].crossing_us;
  });
  double at_us = 0;
  double sum = 0;
  for (const std::size_t t : order) {
    at_us += tenants[t].crossing_us;
    sum += tenants[t].priority * at_us;
  }
  return sum;
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

double weighted_bound_us(std::span<const WeighedTenant> tenants) {
  if (tenants.size() <= kMostOrdered) return least_over_orders(tenants);
  double alone = 0;
  for (const WeighedTenant& tenant : tenants) alone += tenant.priority * tenant.least_us;
  return std::max(alone, by_smiths_rule(tenants));
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
