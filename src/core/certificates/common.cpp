#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "kinds.hpp"
#include "rondo/core/error.hpp"

namespace rondo::certificates {

void refuse_certificate(const std::string& message) {
  throw Error(ExitCode::bad_data, "certificate: " + message);
}

double checked_time(double us) {
  if (!std::isfinite(us)) {
    refuse_certificate(
        "the links it counts are down from some time on and never carry all that has to cross; give them "
        "bandwidth_steps that end above 0");
  }
  return us;
}

std::vector<double> latencies(const Topology& topology) {
  std::vector<double> result;
  result.reserve(topology.num_links());
  for (const Link& link : topology.links()) result.push_back(link.latency_us);
  return result;
}

std::vector<NodeId> gpu_nodes(const Topology& topology) {
  std::vector<NodeId> nodes;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) nodes.push_back(topology.node_of(GpuId(g)));
  return nodes;
}

std::vector<double> distances_from_any(Digraph graph, std::vector<double> length,
                                       const std::vector<NodeId>& sources) {
  const int root = graph.num_nodes++;
  for (const NodeId source : sources) graph.arcs.push_back({root, source.value});
  length.resize(graph.arcs.size(), 0);
  std::vector<double> distance = shortest_paths(graph, length, root).distance;
  distance.pop_back();
  return distance;
}

bool for_everybody(const Topology& topology, const Contribution& part) {
  return part.sources.empty() && part.destinations.size() + 1 == topology.num_gpus();
}

std::vector<GpuId> holders_of(const Contribution& part, GpuId source) {
  if (!std::ranges::binary_search(part.all_sources(), source)) return {};
  if (!part.reduce) return {part.all_sources().begin(), part.all_sources().end()};
  std::vector<GpuId> holders;
  bool own = true;
  for (const HeldSum& held : part.held) {
    own = own && held.gpu != source;
    if (std::ranges::binary_search(held.sources, source)) holders.push_back(held.gpu);
  }
  if (own) holders.push_back(source);
  std::ranges::sort(holders);
  return holders;
}

double ready_of_holder(const Contribution& part, GpuId holder) {
  const bool is_told =
      std::ranges::any_of(part.held, [&](const HeldSum& held) { return held.gpu == holder; });
  if (is_told) return 0;
  if (part.source_ready_us.empty()) return part.ready_us;
  const auto sources = part.all_sources();
  const auto at = std::ranges::lower_bound(sources, holder) - sources.begin();
  return part.ready_us_of(static_cast<std::size_t>(at));
}

void check_opening(const Topology& topology, GpuId gpu, const std::vector<double>& alpha_us) {
  if (!gpu.valid() || gpu.index() >= topology.num_gpus()) {
    refuse_certificate(
        fmt::format("GPU {} does not exist; GPUs are 0 to {}", gpu.value, topology.num_gpus() - 1));
  }
  if (alpha_us.size() != topology.num_nodes()) {
    refuse_certificate(fmt::format("the time cut has {} times; the fabric has {} nodes", alpha_us.size(),
                                   topology.num_nodes()));
  }
  for (std::size_t n = 0; n < alpha_us.size(); ++n) {
    if (!(alpha_us[n] >= 0) || !std::isfinite(alpha_us[n])) {
      refuse_certificate(
          fmt::format("node {} opens at {} us; times are finite and not negative", n, alpha_us[n]));
    }
  }
}

long double bytes_that_start_open(const Topology& topology, const Demand& demand, GpuId gpu,
                                  const std::vector<double>& alpha_us) {
  const auto is_open = [&](const Contribution& part, GpuId holder) {
    return alpha_us[topology.node_of(holder).index()] <= ready_of_holder(part, holder);
  };
  const auto all_open = [&](const Contribution& part, std::span<const GpuId> holders) {
    return !holders.empty() && std::ranges::all_of(holders, [&](GpuId g) { return is_open(part, g); });
  };
  const auto starts_open = [&](const Contribution& part) {
    const auto sources = part.all_sources();
    if (!part.reduce) return all_open(part, sources);
    if (part.held.empty()) return std::ranges::any_of(sources, [&](GpuId g) { return is_open(part, g); });
    return std::ranges::any_of(sources, [&](GpuId g) { return all_open(part, holders_of(part, g)); });
  };
  long double bytes = 0;
  for (const Contribution& part : demand.contributions()) {
    if (std::ranges::binary_search(part.destinations, gpu) && starts_open(part)) bytes += part.bytes;
  }
  return bytes;
}

bool has_to_leave(const Topology& topology, const Contribution& part, const std::vector<char>& inside) {
  const auto is_inside = [&](GpuId g) { return inside[topology.node_of(g).index()] != 0; };
  if (std::ranges::all_of(part.destinations, is_inside)) return false;
  const auto sources = part.all_sources();
  if (!part.reduce) return std::ranges::all_of(sources, is_inside);
  if (part.held.empty()) return std::ranges::any_of(sources, is_inside);
  return std::ranges::any_of(sources, [&](GpuId source) {
    const std::vector<GpuId> holders = holders_of(part, source);
    return !holders.empty() && std::ranges::all_of(holders, is_inside);
  });
}

}  // namespace rondo::certificates
