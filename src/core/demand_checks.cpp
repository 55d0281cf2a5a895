#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/subfabric.hpp"

/// Whether a demand is that of its collective, and whether a topology can serve it.
namespace rondo {
namespace {

/// What one GPU, or the sum of some, has for others.
struct Flow {
  bool reduce;
  std::span<const GpuId> sources;
  std::span<const GpuId> destinations;
  const Contribution* times_and_sums;  ///< ready times and what is held at first

  friend bool operator<(const Flow& a, const Flow& b) {
    if (a.reduce != b.reduce) return b.reduce;
    if (!std::ranges::equal(a.sources, b.sources))
      return std::ranges::lexicographical_compare(a.sources, b.sources);
    if (!std::ranges::equal(a.destinations, b.destinations))
      return std::ranges::lexicographical_compare(a.destinations, b.destinations);
    const Contribution& x = *a.times_and_sums;
    const Contribution& y = *b.times_and_sums;
    if (x.tenant != y.tenant) return x.tenant < y.tenant;
    if (x.priority != y.priority) return x.priority < y.priority;
    if (x.ready_us != y.ready_us) return x.ready_us < y.ready_us;
    if (x.source_ready_us != y.source_ready_us) return x.source_ready_us < y.source_ready_us;
    return std::ranges::lexicographical_compare(x.held, y.held, [](const HeldSum& h, const HeldSum& k) {
      return std::tie(h.gpu, h.sources) < std::tie(k.gpu, k.sources);
    });
  }
};

/// Bytes per flow; the demand has to outlive it.
std::map<Flow, double> totals(const Demand& demand) {
  std::map<Flow, double> result;
  for (const Contribution& c : demand.contributions())
    result[{c.reduce, c.all_sources(), c.destinations, &c}] += c.bytes;
  return result;
}

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

std::string flow_name(const Flow& flow, const Demand& demand) {
  const std::size_t num_members =
      demand.shape().group.empty() ? demand.num_gpus() : demand.shape().group.size();
  const auto to = [&]() -> std::string {
    if (flow.destinations.size() == 1) return fmt::format("GPU {}", flow.destinations.front().value);
    if (flow.destinations.size() == num_members)
      return demand.shape().group.empty() ? "all GPUs" : "the group";
    if (flow.destinations.size() == num_members - 1) return "all others";
    return fmt::format("{} GPUs", flow.destinations.size());
  }();
  if (flow.sources.size() == 1) return fmt::format("from GPU {} to {}", flow.sources.front().value, to);
  return fmt::format("from {} {} GPUs to {}", flow.reduce ? "the sum of" : "any of", flow.sources.size(), to);
}

/// One flag a node: whether `start` reaches it, or (backwards) it reaches `start`.
/// What `closed` says may not pass is no way.
std::vector<char> reachable(const Topology& topology, NodeId start, bool backwards,
                            const std::vector<char>& closed) {
  std::vector<char> seen(topology.num_nodes(), 0);
  std::vector<NodeId> frontier = {start};
  seen[start.index()] = 1;
  while (!frontier.empty()) {
    const NodeId node = frontier.back();
    frontier.pop_back();
    for (const LinkId l : backwards ? topology.in_links(node) : topology.out_links(node)) {
      const NodeId next = backwards ? topology.link(l).src : topology.link(l).dst;
      if (seen[next.index()] || closed[next.index()]) continue;
      seen[next.index()] = 1;
      frontier.push_back(next);
    }
  }
  return seen;
}

/// Whether every GPU reaches every other: GPU 0 reaches all and all reach it.
bool gpus_strongly_connected(const Topology& topology) {
  const NodeId first = topology.node_of(GpuId{0});
  const std::vector<char> none(topology.num_nodes(), 0);
  const auto forward = reachable(topology, first, false, none);
  const auto backward = reachable(topology, first, true, none);
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
  const Demand named =
      make_demand(collective, demand.size_bytes(), demand.num_gpus(), 1, root_of(demand), demand.shape());
  return difference(named, demand);
}

std::optional<std::string> difference(const Demand& asked, const Demand& found) {
  const auto expected = totals(asked);
  const auto have = totals(found);
  for (const auto& [flow, bytes] : expected) {
    const auto it = have.find(flow);
    const double there = it == have.end() ? 0 : it->second;
    if (nearly_equal(there, bytes)) continue;
    return fmt::format("{} bytes go {}; {} of {} bytes asks for {}", there, flow_name(flow, asked),
                       to_string(asked.collective()), asked.size_bytes(), bytes);
  }
  for (const auto& [flow, bytes] : have) {
    if (!expected.contains(flow)) {
      return fmt::format("{} bytes go {}; {} asks for none", bytes, flow_name(flow, found),
                         to_string(asked.collective()));
    }
  }
  return std::nullopt;
}

void check_reachable(const Topology& topology, const Demand& demand) {
  if (topology.num_gpus() != demand.num_gpus()) {
    refuse(fmt::format("the demand is for {} GPUs; topology '{}' has {}", demand.num_gpus(), topology.name(),
                       topology.num_gpus()));
  }
  const std::vector<char> closed = forbidden_nodes(topology, demand);
  if (!demand.forbids_relays() && gpus_strongly_connected(topology)) return;
  std::vector<std::vector<char>> reached(topology.num_gpus());  // per origin, found once
  const auto reaches = [&](GpuId source, GpuId d) {
    auto& flags = reached[source.index()];
    if (flags.empty()) flags = reachable(topology, topology.node_of(source), false, closed);
    return flags[topology.node_of(d).index()] != 0;
  };
  for (const Contribution& c : demand.contributions()) {
    for (const GpuId source : c.all_sources()) {
      for (const GpuId d : c.destinations) {
        // Of a datum one holder will do, and so does one GPU with a sum in which the source's data are.
        const auto brings = [&](const HeldSum& held) {
          return std::ranges::binary_search(held.sources, source) && reaches(held.gpu, d);
        };
        const bool from_other =
            c.reduce ? std::ranges::any_of(c.held, brings)
                     : std::ranges::any_of(c.all_sources(), [&](GpuId other) { return reaches(other, d); });
        if (from_other || reaches(source, d)) continue;
        refuse(fmt::format(
            "GPU {} (node {}) needs data of GPU {} (node {}), but topology '{}' has no path between them{}",
            d.value, topology.node_of(d).value, source.value, topology.node_of(source).value, topology.name(),
            demand.forbids_relays()
                ? fmt::format(
                      " that stays within the group {} (relay is none); let others relay, or take GPUs "
                      "on the way into the group",
                      to_string(demand.shape().group))
                : std::string("; add links or leave the destination out")));
      }
    }
  }
}

}  // namespace rondo
