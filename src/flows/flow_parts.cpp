#include "rondo/flows/flow_parts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

auto members_of(SameAs<FlowField> auto& f) {
  return std::tie(f.entries, f.link_price, f.finish_us);
}
auto members_of(SameAs<SolvedFlow> auto& s) {
  return std::tie(s.status, s.field, s.objective, s.dual_bound, s.columns, s.iterations, s.largest_part_s);
}

namespace {

SolvedFlow solve_whole(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                       const Solver& solver) {
  Instance shared = instance;
  shared.share = solver.share();
  const BuiltModel built = formulation(shared);
  const Solution solution = solver.solve(built.model, limits);
  SolvedFlow solved{solution.status};
  solved.columns = built.model.num_columns();
  solved.largest_part_s = solution.seconds;
  solved.iterations = solution.iterations;
  solved.dual_bound = solution.dual_bound;
  if (solution.status != SolveStatus::optimal) return solved;
  solved.field = built.decode(solution);
  solved.objective = solution.objective;
  return solved;
}

Topology with_bandwidth_over(const Topology& topology, int shares) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.bandwidth_GBps /= shares;
  for (SharedBandwidth& group : data.shared_bandwidth) group.bandwidth_GBps /= shares;
  return Topology(std::move(data));
}

/// Origins by chassis. Where all chassis have as many, a chassis counts as one client of that many chunks, of
/// which PoP gives every part the same share: what leaves a chassis is limited by its network cards.
Demand demand_of_blocks(const Instance& instance, std::vector<GpuId>& origins) {
  const Topology& topology = *instance.topology;
  std::map<int, std::vector<GpuId>> of_chassis;
  std::set<GpuId> seen;
  for (const Contribution& c : instance.demand.contributions()) {
    const std::optional<int> chassis = topology.node(topology.node_of(c.origin)).chassis;
    if (seen.insert(c.origin).second) of_chassis[chassis.value_or(-1 - c.origin.value)].push_back(c.origin);
  }
  const std::size_t size = of_chassis.begin()->second.size();
  const bool even = std::all_of(of_chassis.begin(), of_chassis.end(),
                                [&](const auto& entry) { return entry.second.size() == size; });
  std::vector<Contribution> clients;
  for (const auto& [chassis, members] : of_chassis) {
    for (const GpuId g : members) {
      origins.push_back(g);
      const GpuId other{g.value == 0 ? 1 : 0};  // whereto does not matter
      if (!even || g == members.front()) clients.push_back({g, 1.0, {other}});
    }
  }
  const auto bytes = static_cast<double>(clients.size());
  return Demand(Collective::custom, bytes, instance.demand.num_gpus(), std::move(clients),
                even ? static_cast<int>(size) : 1);
}

}  // namespace

std::vector<Instance> pop_parts(const Instance& instance, const Decompose& decompose, int parts,
                                std::uint64_t seed) {
  const Demand& demand = instance.demand;
  std::vector<GpuId> origins;
  const Decomposition decomposition =
      decompose(*instance.topology, demand_of_blocks(instance, origins), parts, seed);
  std::map<GpuId, int> share_of;
  for (std::size_t b = 0; b < origins.size(); ++b) share_of[origins[b]] = decomposition.share_of_chunk[b];
  const std::vector<Part>& shares = decomposition.stages.front();
  const auto topology = std::make_shared<const Topology>(
      with_bandwidth_over(*instance.topology, static_cast<int>(shares.size())));
  std::vector<Instance> instances;
  for (const Part& part : shares) {
    std::vector<Contribution> own;
    double bytes = 0;
    for (const Contribution& c : demand.contributions()) {
      if (share_of.at(c.origin) != part.share) continue;
      own.push_back(c);
      bytes += c.bytes;
    }
    if (own.empty()) continue;
    instances.push_back({topology, Demand(Collective::custom, bytes, demand.num_gpus(), std::move(own), 1),
                         instance.grid, nullptr, instance.interval_starts});
  }
  return instances;
}

SolvedFlow solve_flow(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                      const Toolbox& tools) {
  return tools.solve_in_parts ? tools.solve_in_parts(instance, formulation, limits)
                              : solve_whole(instance, formulation, limits, *tools.lp);
}

std::vector<SolvedFlow> solve_each(const std::vector<Instance>& parts, const Formulation& formulation,
                                   const SolveLimits& limits, const Solver& solver,
                                   const Communicator& communicator) {
  std::vector<double> work;
  for (const Instance& part : parts) work.push_back(static_cast<double>(part.demand.contributions().size()));
  std::vector<SolvedFlow> solved;
  for (const PartOutcome& outcome : map_parts(communicator, work, [&](std::size_t p) {
         return to_message(solve_whole(parts[p], formulation, limits, solver));
       })) {
    if (outcome.error) throw *outcome.error;
    solved.push_back(from_message<SolvedFlow>(outcome.value));
  }
  return solved;
}

SolvedFlow solve_parts(const std::vector<Instance>& parts, const Formulation& formulation,
                       const SolveLimits& limits, const Solver& solver, const Communicator& communicator) {
  SolvedFlow all{SolveStatus::optimal};
  all.objective = -kInfinity;
  for (const SolvedFlow& part : solve_each(parts, formulation, limits, solver, communicator)) {
    if (part.status != SolveStatus::optimal) all.status = part.status;
    if (part.objective > all.objective) {
      all.objective = part.objective;
      all.dual_bound = part.dual_bound;
    }
    all.iterations = std::max(all.iterations, part.iterations);
    all.columns = std::max(all.columns, part.columns);
    all.largest_part_s = std::max(all.largest_part_s, part.largest_part_s);
    all.field.finish_us = std::max(all.field.finish_us, part.field.finish_us);
    all.field.entries.insert(all.field.entries.end(), part.field.entries.begin(), part.field.entries.end());
  }
  return all;
}

}  // namespace rondo
