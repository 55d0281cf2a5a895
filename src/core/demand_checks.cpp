#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/collective.hpp"

/// Whether a demand is that of its collective, and whether a topology can serve it.
namespace rondo {
namespace {

/// What one GPU, or the sum of some, has for others.
struct Flow {
  bool reduce;
  std::span<const GpuId> sources;
  std::span<const GpuId> destinations;

  friend bool operator<(const Flow& a, const Flow& b) {
    if (a.reduce != b.reduce) return b.reduce;
    if (!std::ranges::equal(a.sources, b.sources))
      return std::ranges::lexicographical_compare(a.sources, b.sources);
    return std::ranges::lexicographical_compare(a.destinations, b.destinations);
  }
};

/// Bytes per flow; the demand has to outlive it.
std::map<Flow, double> totals(const Demand& demand) {
  std::map<Flow, double> result;
  for (const Contribution& c : demand.contributions())
    result[{c.reduce, c.all_sources(), c.destinations}] += c.bytes;
  return result;
}

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

std::string flow_name(const Flow& flow, std::size_t num_gpus) {
  const auto to = [&]() -> std::string {
    if (flow.destinations.size() == 1) return fmt::format("GPU {}", flow.destinations.front().value);
    if (flow.destinations.size() == num_gpus) return "all GPUs";
    if (flow.destinations.size() == num_gpus - 1) return "all others";
    return fmt::format("{} GPUs", flow.destinations.size());
  }();
  if (flow.sources.size() == 1) return fmt::format("from GPU {} to {}", flow.sources.front().value, to);
  return fmt::format("from {} {} GPUs to {}", flow.reduce ? "the sum of" : "any of", flow.sources.size(), to);
}

/// One flag a node: whether `start` reaches it, or (backwards) it reaches `start`.
std::vector<char> reachable(const Topology& topology, NodeId start, bool backwards) {
  std::vector<char> seen(topology.num_nodes(), 0);
  std::vector<NodeId> frontier = {start};
  seen[start.index()] = 1;
  while (!frontier.empty()) {
    const NodeId node = frontier.back();
    frontier.pop_back();
    for (const LinkId l : backwards ? topology.in_links(node) : topology.out_links(node)) {
      const NodeId next = backwards ? topology.link(l).src : topology.link(l).dst;
      if (seen[next.index()]) continue;
      seen[next.index()] = 1;
      frontier.push_back(next);
    }
  }
  return seen;
}

/// Whether every GPU reaches every other: GPU 0 reaches all and all reach it.
bool gpus_strongly_connected(const Topology& topology) {
  const NodeId first = topology.node_of(GpuId{0});
  const auto forward = reachable(topology, first, false);
  const auto backward = reachable(topology, first, true);
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const std::size_t n = topology.node_of(GpuId(g)).index();
    if (!forward[n] || !backward[n]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> mismatch_with_collective(const Demand& demand) {
  const Collective collective = demand.collective();
  if (collective == Collective::custom) {
    double sum = 0;
    for (const Contribution& c : demand.contributions()) sum += c.bytes;
    if (nearly_equal(sum, demand.size_bytes())) return std::nullopt;
    return fmt::format("the contributions have {} bytes together; size_bytes is {}", sum,
                       demand.size_bytes());
  }
  const Demand named = make_demand(collective, demand.size_bytes(), demand.num_gpus(), 1, root_of(demand));
  const auto found = totals(demand);
  const auto expected = totals(named);
  for (const auto& [flow, bytes] : expected) {
    const auto it = found.find(flow);
    const double have = it == found.end() ? 0 : it->second;
    if (nearly_equal(have, bytes)) continue;
    return fmt::format("{} bytes go {}; {} of {} bytes asks for {}", have, flow_name(flow, demand.num_gpus()),
                       to_string(collective), demand.size_bytes(), bytes);
  }
  for (const auto& [flow, bytes] : found) {
    if (!expected.contains(flow)) {
      return fmt::format("{} bytes go {}; {} asks for none", bytes, flow_name(flow, demand.num_gpus()),
                         to_string(collective));
    }
  }
  return std::nullopt;
}

void check_reachable(const Topology& topology, const Demand& demand) {
  if (topology.num_gpus() != demand.num_gpus()) {
    refuse(fmt::format("the demand is for {} GPUs; topology '{}' has {}", demand.num_gpus(), topology.name(),
                       topology.num_gpus()));
  }
  if (gpus_strongly_connected(topology)) return;
  std::vector<std::vector<char>> reached(topology.num_gpus());  // per origin, found once
  for (const Contribution& c : demand.contributions()) {
    for (const GpuId source : c.all_sources()) {
      auto& flags = reached[source.index()];
      if (flags.empty()) flags = reachable(topology, topology.node_of(source), false);
      for (const GpuId d : c.destinations) {
        if (flags[topology.node_of(d).index()]) continue;
        refuse(fmt::format(
            "GPU {} (node {}) needs data of GPU {} (node {}), but topology '{}' has no path between "
            "them; add links or leave the destination out",
            d.value, topology.node_of(d).value, source.value, topology.node_of(source).value,
            topology.name()));
      }
    }
  }
}

}  // namespace rondo
