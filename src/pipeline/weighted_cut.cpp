#include "weighted_cut.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rondo {

namespace {

/// A certificate of more sets would not be looked through.
constexpr std::size_t kMostSets = 64;

std::set<std::vector<NodeId>> candidates(const Topology& topology, const Bounds& bounds,
                                         const std::vector<TenantOutcome>& tenants) {
  std::set<std::vector<NodeId>> sets;
  const auto add = [&](const Certificate& certificate) {
    if (const auto* cut = std::get_if<CutCertificate>(&certificate)) sets.insert(cut->nodes);
  };
  for (const LowerBound& bound : bounds.all) add(bound.certificate);
  for (const TenantOutcome& outcome : tenants) add(outcome.lower_bound.certificate);
  std::map<int, std::vector<NodeId>> chassis;
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.node(NodeId(n)).chassis) chassis[*topology.node(NodeId(n)).chassis].push_back(NodeId(n));
    if (topology.is_gpu(NodeId(n))) sets.insert({NodeId(n)});
  }
  for (const auto& [number, nodes] : chassis) sets.insert(nodes);
  for (const std::vector<NodeId>& nodes : std::vector(sets.begin(), sets.end())) {
    std::vector<NodeId> others;
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      if (!std::ranges::binary_search(nodes, NodeId(n))) others.push_back(NodeId(n));
    }
    if (!others.empty()) sets.insert(std::move(others));
  }
  return sets;
}

/// How much more than in `bound` the tenants would have to wait in its order for all to leave the set.
double missed(const WeightedBound& bound, const std::vector<WeighedTenant>& tenants,
              const std::vector<double>& crossing_us) {
  std::vector<double> left_us(tenants.front().crossing_us.size(), 0);
  double end_us = 0;
  double more_us = 0;
  double sum = 0;
  for (const std::size_t t : bound.order) {
    end_us = std::max(end_us, tenants[t].least_us);
    for (std::size_t cut = 0; cut < left_us.size(); ++cut) {
      left_us[cut] += tenants[t].crossing_us[cut];
      end_us = std::max(end_us, left_us[cut]);
    }
    more_us += crossing_us[t];
    sum += tenants[t].priority * std::max(0.0, more_us - end_us);
  }
  return sum;
}

}  // namespace

std::vector<WeighedTenant> weighed(const Topology& topology, const Demand& demand,
                                   const std::vector<TenantOutcome>& tenants,
                                   const std::vector<std::vector<NodeId>>& sets) {
  std::vector<WeighedTenant> all;
  for (const TenantOutcome& outcome : tenants)
    all.push_back({outcome.tenant.priority, outcome.tenant.start_us + outcome.lower_bound.us});
  for (const std::vector<NodeId>& nodes : sets) {
    const std::vector<double> crossing_us = crossing_times_us(topology, demand, nodes);
    for (std::size_t t = 0; t < all.size(); ++t) all[t].crossing_us.push_back(crossing_us[t]);
  }
  return all;
}

std::vector<std::vector<NodeId>> weighted_cuts(const Instance& instance, const Bounds& bounds,
                                               const std::vector<TenantOutcome>& tenants) {
  const std::set<std::vector<NodeId>> among = candidates(*instance.topology, bounds, tenants);
  const std::vector<std::vector<NodeId>> sets(among.begin(), among.end());
  std::vector<std::vector<double>> crossing_us;
  for (const std::vector<NodeId>& nodes : sets)
    crossing_us.push_back(crossing_times_us(*instance.topology, instance.demand, nodes));
  std::vector<WeighedTenant> all = weighed(*instance.topology, instance.demand, tenants, {});
  std::vector<std::vector<NodeId>> taken;
  std::vector<char> is_taken(sets.size(), 0);
  WeightedBound bound = weighted_bound(all);
  const double alone = bound.us;
  // The order in which all would end too early for some set is what keeps the bound low: that set is added.
  while (taken.size() < kMostSets) {
    std::size_t next = sets.size();
    double most = 1e-9 * bound.us;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const double more = is_taken[s] != 0 ? 0 : missed(bound, all, crossing_us[s]);
      if (more <= most) continue;
      most = more;
      next = s;
    }
    if (next == sets.size()) break;
    for (std::size_t t = 0; t < all.size(); ++t) all[t].crossing_us.push_back(crossing_us[next][t]);
    is_taken[next] = 1;
    taken.push_back(sets[next]);
    bound = weighted_bound(all);
  }
  return bound.us > alone ? taken : std::vector<std::vector<NodeId>>{};
}

}  // namespace rondo
