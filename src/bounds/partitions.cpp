#include "rondo/bounds/partitions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "dilworth.hpp"
#include "partition_quotient.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Members times arcs, beyond which candidates have to do: about 3 s a truncation.
constexpr std::size_t kMostTruncationWork = 18'000'000;
/// Of the slowest links that are taken to join no set, so many different bandwidths are tried.
constexpr std::size_t kMostThresholds = 16;
/// Different groups of members that share sums, those of most bytes.
constexpr std::size_t kMostGroups = 4;
/// A lesser quotient counts if it is less by this part.
constexpr double kWorthwhileLoss = 1e-9;

using Part = std::vector<int>;

/// One flag a node: on GPUs that give to a sum and want it, for each different group of them, those with most
/// bytes first. Of sums that are begun (`held`) some set may have nothing alone, and then no partition
/// counts.
std::vector<std::vector<char>> member_groups(const Topology& topology, const Demand& demand) {
  std::map<std::vector<GpuId>, double> bytes;
  for (const Contribution& c : demand.contributions()) {
    if (!c.reduce || !c.held.empty()) continue;
    std::vector<GpuId> members;
    std::ranges::set_intersection(c.sources, c.destinations, std::back_inserter(members));
    if (members.size() > 1) bytes[std::move(members)] += c.bytes;
  }
  std::vector<std::pair<double, const std::vector<GpuId>*>> order;
  for (const auto& [members, sum] : bytes) order.emplace_back(sum, &members);
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& group) { return group.first; });
  if (order.size() > kMostGroups) order.resize(kMostGroups);
  std::vector<std::vector<char>> groups;
  for (const auto& [sum, members] : order) {
    std::vector<char>& flags = groups.emplace_back(topology.num_nodes(), 0);
    for (const GpuId g : *members) flags[topology.node_of(g).index()] = 1;
  }
  return groups;
}

Part single_members(const PartitionProblem& problem) {
  Part part(index(problem.num_nodes), -1);
  for (std::size_t n = 0; n < part.size(); ++n) {
    if (problem.is_member[n]) part[n] = static_cast<int>(n);
  }
  return part;
}

/// Members without a chassis stay alone.
Part chassis(const Topology& topology, const PartitionProblem& problem) {
  Part part = single_members(problem);
  const int beyond = problem.num_nodes;
  for (std::size_t n = 0; n < part.size(); ++n) {
    if (const auto& number = topology.nodes()[n].chassis) part[n] = beyond + *number;
  }
  return part;
}

/// What the arcs of at least so much bandwidth join, whichever way they lead.
Part joined_by_fast_arcs(const PartitionProblem& problem, double least_GBps) {
  Part root(index(problem.num_nodes));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int n) {
    while (root[index(n)] != n) n = root[index(n)] = root[index(root[index(n)])];
    return n;
  };
  for (std::size_t a = 0; a < problem.arcs.size(); ++a) {
    if (problem.GBps[a] >= least_GBps) root[index(find(problem.arcs[a].src))] = find(problem.arcs[a].dst);
  }
  for (int n = 0; n < problem.num_nodes; ++n) root[index(n)] = find(n);
  return root;
}

std::vector<Quotient> candidates(const Topology& topology, const PartitionProblem& problem) {
  std::vector<Part> parts{single_members(problem), chassis(topology, problem)};
  std::set<double, std::greater<>> bandwidths(problem.GBps.begin(), problem.GBps.end());
  std::size_t tried = 0;
  for (const double GBps : bandwidths) {
    if (tried++ == kMostThresholds) break;
    parts.push_back(joined_by_fast_arcs(problem, GBps));
  }
  std::vector<Quotient> found;
  for (Part& part : parts) found.push_back(completed(problem, std::move(part)));
  return found;
}

void add_partitions(const Topology& topology, const std::vector<char>& members, bool enter,
                    const Deadline& deadline, std::vector<std::pair<double, PartitionCertificate>>& found) {
  const PartitionProblem problem(topology, members, enter);
  std::vector<Quotient> quotients = candidates(topology, problem);
  const auto num_members = static_cast<std::size_t>(std::ranges::count(members, 1));
  double least =
      std::ranges::min_element(quotients, {}, [](const Quotient& quotient) { return quotient.GBps; })->GBps;
  while (num_members * problem.arcs.size() <= kMostTruncationWork && least > 0) {
    std::optional<Part> truncated = dilworth_truncation(problem, least, deadline);
    if (!truncated) break;
    Quotient quotient = completed(problem, *std::move(truncated));
    if (!(quotient.GBps < least * (1 - kWorthwhileLoss))) break;
    least = quotient.GBps;
    quotients.push_back(std::move(quotient));
  }
  for (Quotient& quotient : quotients) {
    if (quotient.GBps > 0 && std::isfinite(quotient.GBps))
      found.emplace_back(quotient.GBps, PartitionCertificate{std::move(quotient.part), enter});
  }
}

}  // namespace

std::vector<PartitionCertificate> find_partitions(const Topology& topology, const Demand& demand,
                                                  const Deadline& deadline) {
  std::vector<std::pair<double, PartitionCertificate>> found;
  for (const std::vector<char>& members : member_groups(topology, demand)) {
    for (const bool enter : {true, false}) add_partitions(topology, members, enter, deadline, found);
  }
  std::ranges::stable_sort(found, {}, [](const auto& partition) { return partition.first; });
  std::vector<PartitionCertificate> partitions;
  for (auto& entry : found) {
    PartitionCertificate& partition = entry.second;
    const auto same = [&](const PartitionCertificate& other) {
      return other.enter == partition.enter && other.part == partition.part;
    };
    if (std::ranges::none_of(partitions, same)) partitions.push_back(std::move(partition));
  }
  return partitions;
}

}  // namespace rondo
