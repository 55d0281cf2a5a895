#include "rondo/core/contribution_times.hpp"

#include <algorithm>
#include <limits>

#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// Relative: more than sums of as many delays as there are nodes lose in double.
constexpr double kRoundingOfTimes = 1e-12;

std::vector<double> delays(const Topology& topology) {
  std::vector<double> all;
  for (const Link& link : topology.links())
    all.push_back(link.latency_us + topology.message_us_at_start(link));
  return all;
}

}  // namespace

std::vector<const Contribution*> plain_sums_for(const Demand& demand, GpuId destination) {
  std::vector<const Contribution*> sums;
  for (const Contribution& part : demand.contributions()) {
    if (part.reduce && part.held.empty() && std::ranges::binary_search(part.destinations, destination))
      sums.push_back(&part);
  }
  return sums;
}

std::vector<TimedSource> timed_sources(const std::vector<const Contribution*>& sums,
                                       const std::vector<GpuId>& gpus) {
  std::vector<TimedSource> all;
  for (const GpuId g : gpus) {
    TimedSource source{g, std::numeric_limits<double>::infinity()};
    for (const Contribution* sum : sums) {
      const auto at = std::ranges::lower_bound(sum->sources, g);
      if (at == sum->sources.end() || *at != g) continue;
      const auto number = static_cast<std::size_t>(at - sum->sources.begin());
      source.ready_us = std::min(source.ready_us, sum->ready_us_of(number));
    }
    if (source.ready_us < std::numeric_limits<double>::infinity()) all.push_back(source);
  }
  return all;
}

std::vector<std::vector<double>> contribution_times(const Topology& topology,
                                                    const std::vector<TimedSource>& sources) {
  const std::size_t nodes = topology.num_nodes();
  const std::vector<double> delay_us = delays(topology);
  const auto passes_on = [&](NodeId n) {
    const Node& node = topology.node(n);
    return node.kind != NodeKind::gpu && !node.reduce;
  };
  ShortestPathSearch search(topology.graph());
  search.set_lengths(delay_us);
  std::vector<std::vector<double>> times(
      nodes, std::vector<double>(sources.size(), std::numeric_limits<double>::infinity()));
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::vector<double> distance = search.from(topology.node_of(sources[s].gpu).value).distance;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (!passes_on(NodeId(n))) times[n][s] = (sources[s].ready_us + distance[n]) * (1 - kRoundingOfTimes);
    }
  }
  for (std::vector<double>& of_node : times) std::ranges::sort(of_node);
  for (bool changes = true; changes;) {
    changes = false;
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const Link& link = topology.links()[l];
      if (!passes_on(link.dst)) continue;
      for (std::size_t k = 0; k < sources.size(); ++k) {
        const double us = times[link.src.index()][k] + delay_us[l] * (1 - kRoundingOfTimes);
        double& known_us = times[link.dst.index()][k];
        if (!(us < known_us)) continue;
        known_us = us;
        changes = true;
      }
    }
  }
  return times;
}

}  // namespace rondo
