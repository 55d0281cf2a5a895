#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "combined_figures.hpp"
#include "rondo/core/random.hpp"
#include "rondo/decomp/decomposition.hpp"

/// PoP (SOSP 2021): data dealt at random over parts, each of which has as large a share of every link. The
/// clients that are dealt are chunks where a round is taken apart and origins where a flow is.
namespace rondo {
namespace {

constexpr int kDefaultShares = 4;

int num_shares(int parts) {
  return parts > 0 ? parts : kDefaultShares;
}

/// A contribution's chunks go to one share after the other, from one chosen at random: large contributions
/// are split evenly.
std::vector<int> deal_chunks(const Demand& demand, int shares, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> order(demand.contributions().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(std::span(order));
  std::vector<int> share_of_chunk(demand.num_chunks());
  const auto chunks = static_cast<std::size_t>(demand.chunks_per_contribution());
  std::size_t next = 0;
  for (const std::size_t i : order) {
    for (std::size_t c = i * chunks; c < (i + 1) * chunks; ++c)
      share_of_chunk[c] = static_cast<int>(next++ % static_cast<std::size_t>(shares));
  }
  return share_of_chunk;
}

Decomposition decompose_chunks(const Topology&, const Demand& demand, int parts, std::uint64_t seed) {
  const int shares = num_shares(parts);
  Decomposition result{{{}}, {}, deal_chunks(demand, shares, seed)};
  for (int i = 0; i < shares; ++i) {
    Part part;
    part.name = "pop " + std::to_string(i + 1) + " of " + std::to_string(shares);
    part.share = i;
    part.shares = shares;
    result.stages.front().push_back(part);
  }
  return result;
}

Topology with_bandwidth_over(const Topology& topology, int shares) {
  TopologyData data = topology.data();
  for (Link& link : data.links) {
    link.bandwidth_GBps /= shares;
    for (BandwidthStep& step : link.bandwidth_steps) step.GBps /= shares;
  }
  for (SharedBandwidth& group : data.shared_bandwidth) group.bandwidth_GBps /= shares;
  return Topology(std::move(data));
}

/// The share of each origin. Where all chassis have as many origins, a chassis counts as one client with a
/// chunk an origin, of which every share gets equally many: what leaves a chassis is limited by its network
/// cards.
std::map<GpuId, int> deal_origins(const Instance& instance, int shares, std::uint64_t seed) {
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
  std::vector<GpuId> origins;
  std::vector<Contribution> clients;
  for (const auto& [chassis, members] : of_chassis) {
    for (const GpuId g : members) {
      origins.push_back(g);
      const GpuId other{g.value == 0 ? 1 : 0};  // whereto does not matter
      if (!even || g == members.front()) clients.push_back({g, 1.0, {other}});
    }
  }
  const auto bytes = static_cast<double>(clients.size());
  const Demand demand(Collective::custom, bytes, instance.demand.num_gpus(), std::move(clients),
                      even ? static_cast<int>(size) : 1);
  const std::vector<int> share_of_chunk = deal_chunks(demand, shares, seed);
  std::map<GpuId, int> share_of;
  for (std::size_t i = 0; i < origins.size(); ++i) share_of[origins[i]] = share_of_chunk[i];
  return share_of;
}

/// Each link has the same share of its bandwidth in every part, so that the sum of the parts' flows fits.
/// Parts without data are left out.
std::vector<Instance> parts_of_flow(const Instance& instance, int shares, std::uint64_t seed) {
  const std::map<GpuId, int> share_of = deal_origins(instance, shares, seed);
  const auto topology = std::make_shared<const Topology>(with_bandwidth_over(*instance.topology, shares));
  std::vector<Instance> parts;
  for (int share = 0; share < shares; ++share) {
    std::vector<Contribution> own;
    double bytes = 0;
    for (const Contribution& c : instance.demand.contributions()) {
      if (share_of.at(c.origin) != share) continue;
      own.push_back(c);
      bytes += c.bytes;
    }
    if (own.empty()) continue;
    parts.push_back({topology,
                     Demand(Collective::custom, bytes, instance.demand.num_gpus(), std::move(own), 1),
                     instance.grid, nullptr, instance.interval_starts});
  }
  return parts;
}

SolvedFlow sum_of_parts(const Instance& instance, int parts, std::uint64_t seed, const SolveFlows& solve) {
  const std::vector<SolvedFlow> solved = solve(parts_of_flow(instance, num_shares(parts), seed));
  SolvedFlow all = combined_figures(solved);
  for (const SolvedFlow& part : solved)
    all.field.entries.insert(all.field.entries.end(), part.field.entries.begin(), part.field.entries.end());
  return all;
}

}  // namespace

DecompositionInfo pop_decomposition() {
  return {.name = "pop",
          .help =
              "chunks, or the origins of flows, dealt at random over --parts, each with its share of every "
              "link (PoP)",
          .parts_help = "of pop (0: 4)",
          .decompose_round = decompose_chunks,
          .solve_flow = sum_of_parts};
}

}  // namespace rondo
