#include "weighted_cut.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rondo {

std::vector<NodeId> weighted_cut(const Instance& instance, const Bounds& bounds,
                                 const std::vector<TenantOutcome>& tenants) {
  const Topology& topology = *instance.topology;
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
  std::vector<WeighedTenant> weighed;
  for (const TenantOutcome& outcome : tenants)
    weighed.push_back({outcome.tenant.priority, outcome.tenant.start_us + outcome.lower_bound.us, 0});
  std::vector<NodeId> best;
  double best_us = weighted_bound_us(weighed);
  for (const std::vector<NodeId>& nodes : sets) {
    const std::vector<double> crossing_us = crossing_times_us(topology, instance.demand, nodes);
    for (std::size_t t = 0; t < weighed.size(); ++t) weighed[t].crossing_us = crossing_us[t];
    const double us = weighted_bound_us(weighed);
    if (us <= best_us) continue;
    best_us = us;
    best = nodes;
  }
  return best;
}

}  // namespace rondo
