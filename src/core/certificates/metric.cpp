#include <fmt/format.h>

#include <cmath>

#include "carriers.hpp"
#include "kinds.hpp"

namespace rondo::certificates {
namespace {

/// Sum over pairs of bytes x shortest distance under `length`.
double demand_distance(const Topology& topology, const Demand& demand, const std::vector<double>& length) {
  std::vector<std::vector<const Contribution*>> from(topology.num_gpus());
  for (const Contribution& part : demand.contributions()) from[part.origin.index()].push_back(&part);
  ShortestPathSearch search(topology.graph());
  search.set_lengths(length);
  double sum = 0;
  for (std::size_t g = 0; g < from.size(); ++g) {
    if (from[g].empty()) continue;
    const std::vector<double> distance = search.from(topology.node_of(GpuId(g)).value).distance;
    for (const Contribution* part : from[g]) {
      sum += part->bytes * distance[topology.node_of(part->destinations.front()).index()];
    }
  }
  return sum;
}

}  // namespace

double bound(const Topology& topology, const Demand& demand, const MetricCertificate& metric) {
  if (!metric.from_us.empty()) return bound_with_periods(topology, demand, metric);
  if (!metric.data.empty() || !metric.shares.empty())
    refuse_certificate("shares of lengths are for a metric with periods; give from_us");
  if (!demand.is_unicast()) {
    refuse_certificate(
        "a metric holds for pairwise demand only; here some data has several sources or destinations");
  }
  if (metric.length.size() != topology.num_links()) {
    refuse_certificate(fmt::format("the metric has {} lengths; the fabric has {} links", metric.length.size(),
                                   topology.num_links()));
  }
  for (std::size_t l = 0; l < metric.length.size(); ++l) {
    if (!(metric.length[l] >= 0) || !std::isfinite(metric.length[l])) {
      refuse_certificate(
          fmt::format("link {} has the length {}; lengths are finite and not negative", l, metric.length[l]));
    }
  }
  const double amount = demand_distance(topology, demand, metric.length);
  if (!(amount > 0) || !std::isfinite(amount)) {
    refuse_certificate(fmt::format(
        "the demand's bytes times distances sum to {}; a metric has to keep some pair apart, and all pairs "
        "have to be connected",
        amount));
  }
  const std::vector<double> latency = latencies(topology);
  const std::vector<NodeId> gpus = gpu_nodes(topology);
  const std::vector<double> to_tail = distances_from_any(topology.graph(), latency, gpus);
  const std::vector<double> from_head = distances_from_any(reversed(topology.graph()), latency, gpus);
  Carriers carriers;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    const double before_us = to_tail[link.src.index()];
    const double behind_us = from_head[link.dst.index()];
    const double from_us = before_us + link.latency_us + behind_us;
    if (from_us != kUnreachable) carriers.add(link, from_us, link.latency_us + behind_us, metric.length[l]);
  }
  return checked_time(carriers.time_for(amount));
}

}  // namespace rondo::certificates
