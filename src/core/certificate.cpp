#include "rondo/core/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse_certificate(const std::string& message) {
  throw Error(ExitCode::bad_data, "certificate: " + message);
}

std::vector<double> latencies(const Topology& topology) {
  std::vector<double> result;
  result.reserve(topology.num_links());
  for (const Link& link : topology.links()) result.push_back(link.latency_us);
  return result;
}

std::vector<double> distances_from(const Topology& topology, const std::vector<double>& length,
                                   NodeId source) {
  return shortest_paths(topology.graph(), length, source.value).distance;
}

/// Per node, the distance from the nearest of `sources`, along the arcs of `graph`.
std::vector<double> distances_from_any(Digraph graph, std::vector<double> length,
                                       const std::vector<NodeId>& sources) {
  const int root = graph.num_nodes++;
  for (const NodeId source : sources) graph.arcs.push_back({root, source.value});
  length.resize(graph.arcs.size(), 0);
  std::vector<double> distance = shortest_paths(graph, length, root).distance;
  distance.pop_back();
  return distance;
}

std::vector<NodeId> gpu_nodes(const Topology& topology) {
  std::vector<NodeId> nodes;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) nodes.push_back(topology.node_of(GpuId(g)));
  return nodes;
}

/// Something that carries `rate` a microsecond from `from_us` on.
struct Carrier {
  double from_us;
  double rate;
};

/// The T that solves sum of rate x max(0, T - from) = amount > 0. The left side is piecewise linear in T,
/// with a corner at each `from`.
double time_to_carry(std::vector<Carrier> carriers, double amount) {
  std::sort(carriers.begin(), carriers.end(),
            [](const Carrier& a, const Carrier& b) { return a.from_us < b.from_us; });
  double rate = 0;
  for (std::size_t i = 0; i < carriers.size(); ++i) {
    rate += carriers[i].rate;
    const double until_us = i + 1 < carriers.size() ? carriers[i + 1].from_us : kInfinity;
    const double carried = rate > 0 ? rate * (until_us - carriers[i].from_us) : 0;
    if (carried >= amount) return carriers[i].from_us + amount / rate;
    amount -= carried;
  }
  return kInfinity;
}

/// The same where every carrier moves pieces of `piece` bytes, each one whole, after one another.
double time_to_carry_whole(const std::vector<Carrier>& carriers, double amount, double piece) {
  const double fluid_us = time_to_carry(carriers, amount);
  const auto time_of = [&](const Carrier& c, double pieces) { return c.from_us + pieces * piece / c.rate; };
  // What is carried by then, and when each carrier ends its next piece.
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>,
                      std::greater<>>
      next;
  std::vector<double> carried(carriers.size(), 0);
  double missing = std::round(amount / piece);
  for (std::size_t i = 0; i < carriers.size(); ++i) {
    const Carrier& c = carriers[i];
    carried[i] = std::max(0.0, std::floor((fluid_us - c.from_us) * c.rate / piece * (1 + 1e-9)));
    missing -= carried[i];
    next.emplace(time_of(c, carried[i] + 1), i);
  }
  double end_us = fluid_us;
  for (; missing > 0.5; --missing) {
    const auto [time_us, i] = next.top();
    next.pop();
    end_us = time_us;
    next.emplace(time_of(carriers[i], ++carried[i] + 1), i);
  }
  return end_us;
}

double bound(const Topology& topology, const Demand& demand, const LatencyCertificate& pair) {
  for (const GpuId g : {pair.source, pair.destination}) {
    if (!g.valid() || g.index() >= topology.num_gpus()) {
      refuse_certificate(
          fmt::format("GPU {} does not exist; GPUs are 0 to {}", g.value, topology.num_gpus() - 1));
    }
  }
  const bool exchanges = std::any_of(
      demand.contributions().begin(), demand.contributions().end(), [&](const Contribution& part) {
        return part.origin == pair.source &&
               std::binary_search(part.destinations.begin(), part.destinations.end(), pair.destination);
      });
  if (!exchanges) {
    refuse_certificate(
        fmt::format("GPU {} sends nothing to GPU {}; a latency bound needs a pair that exchanges data",
                    pair.source.value, pair.destination.value));
  }
  return distances_from(topology, latencies(topology),
                        topology.node_of(pair.source))[topology.node_of(pair.destination).index()];
}

/// Whether all GPUs but the origin want the part: then nobody has to be looked for among its destinations.
bool for_everybody(const Topology& topology, const Contribution& part) {
  return part.destinations.size() + 1 == topology.num_gpus();
}

/// The distinct sets of GPUs outside S that want something which originates in S.
std::vector<std::vector<GpuId>> audiences(const Topology& topology, const Demand& demand,
                                          const std::vector<char>& inside) {
  std::vector<GpuId> all_outside;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (!inside[topology.node_of(GpuId(g)).index()]) all_outside.push_back(GpuId(g));
  }
  std::vector<std::vector<GpuId>> sets;
  for (const Contribution& part : demand.contributions()) {
    if (!inside[topology.node_of(part.origin).index()]) continue;
    std::vector<GpuId> outside;
    if (for_everybody(topology, part)) {
      if (!sets.empty() && sets.back() == all_outside) continue;
      outside = all_outside;
    } else {
      for (const GpuId g : part.destinations) {
        if (!inside[topology.node_of(g).index()]) outside.push_back(g);
      }
    }
    // Most often all that originates in S has the same audience.
    if (!outside.empty() && (sets.empty() || sets.back() != outside)) sets.push_back(std::move(outside));
  }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

/// min q_e over `leaving` for multicast demand: what remains to be done once a byte has entered its link out
/// of S.
double least_tail_us(const Topology& topology, const std::vector<double>& latency,
                     const std::vector<LinkId>& leaving, const std::vector<std::vector<GpuId>>& audiences) {
  std::map<NodeId, double> least_latency;  // per head of a leaving link
  for (const LinkId l : leaving) {
    const auto [it, added] = least_latency.try_emplace(topology.link(l).dst, latency[l.index()]);
    if (!added) it->second = std::min(it->second, latency[l.index()]);
  }
  ShortestPathSearch search(topology.graph());
  search.set_lengths(latency);
  double least = kInfinity;
  for (const auto& [head, latency_us] : least_latency) {
    const std::vector<double> distance = search.from(head.value).distance;
    for (const std::vector<GpuId>& audience : audiences) {
      double farthest = 0;
      for (const GpuId g : audience) farthest = std::max(farthest, distance[topology.node_of(g).index()]);
      least = std::min(least, latency_us + farthest);
    }
  }
  return least;
}

/// The same where copies of the last byte may leave over several links, each nearest to its own destination:
/// least over chunks of the greatest over destinations of the least over links.
double sound_tail_us(const Topology& topology, const std::vector<double>& latency,
                     const std::vector<LinkId>& leaving, const std::vector<std::vector<GpuId>>& audiences) {
  Digraph graph = topology.graph();
  std::vector<double> length = latency;
  const int root = graph.num_nodes++;
  for (const LinkId l : leaving) {
    graph.arcs.push_back({root, topology.link(l).dst.value});
    length.push_back(latency[l.index()]);
  }
  const std::vector<double> distance = shortest_paths(graph, length, root).distance;
  double least = kInfinity;
  for (const std::vector<GpuId>& audience : audiences) {
    double farthest = 0;
    for (const GpuId g : audience) farthest = std::max(farthest, distance[topology.node_of(g).index()]);
    least = std::min(least, farthest);
  }
  return least;
}

using TailRule = decltype(&least_tail_us);

/// `piece_bytes` > 0: data crosses in whole pieces of so many.
double bound(const Topology& topology, const Demand& demand, const CutCertificate& cut, TailRule tail_rule,
             double piece_bytes = 0) {
  std::vector<char> inside(topology.num_nodes(), 0);
  for (const NodeId n : cut.nodes) {
    if (!n.valid() || n.index() >= topology.num_nodes()) {
      refuse_certificate(fmt::format("node {} of the cut does not exist; nodes are 0 to {}", n.value,
                                     topology.num_nodes() - 1));
    }
    inside[n.index()] = 1;
  }
  const double bytes = bytes_leaving(topology, demand, inside);
  if (!(bytes > 0))
    refuse_certificate("no byte has to leave the cut; it has to separate data from a GPU that wants it");
  if (!(std::abs(cut.bytes - bytes) <= 1e-9 * bytes)) {
    refuse_certificate(
        fmt::format("{} bytes are said to leave the cut; the demand gives {}", cut.bytes, bytes));
  }

  std::vector<NodeId> sources;
  for (const NodeId n : gpu_nodes(topology)) {
    if (inside[n.index()]) sources.push_back(n);
  }
  const std::vector<double> latency = latencies(topology);
  const std::vector<double> reached_us = distances_from_any(topology.graph(), latency, sources);
  std::vector<LinkId> leaving;
  std::vector<Carrier> carriers;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    const double from_us = reached_us[link.src.index()];
    if (!inside[link.src.index()] || inside[link.dst.index()] || from_us == kInfinity) continue;
    leaving.push_back(LinkId(l));
    carriers.push_back({from_us, link.bandwidth_GBps * kBytesPerUsPerGBps});
  }
  double tail_us = kInfinity;
  if (demand.is_unicast()) {
    for (const LinkId l : leaving) tail_us = std::min(tail_us, latency[l.index()]);
  } else {
    tail_us = tail_rule(topology, latency, leaving, audiences(topology, demand, inside));
  }
  if (tail_us == kInfinity) {
    refuse_certificate(
        "no link out of the cut leads from a GPU inside to all GPUs outside that want the same data");
  }
  if (piece_bytes > 0) return time_to_carry_whole(carriers, bytes, piece_bytes) + tail_us;
  return time_to_carry(std::move(carriers), bytes) + tail_us;
}

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

double bound(const Topology& topology, const Demand& demand, const MetricCertificate& metric) {
  if (!demand.is_unicast())
    refuse_certificate("a metric holds for pairwise demand only; here some data has several destinations");
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
  std::vector<Carrier> carriers;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    const double from_us = to_tail[link.src.index()] + link.latency_us + from_head[link.dst.index()];
    if (from_us == kInfinity) continue;
    carriers.push_back({from_us, link.bandwidth_GBps * kBytesPerUsPerGBps * metric.length[l]});
  }
  return time_to_carry(std::move(carriers), amount);
}

}  // namespace

std::string certificate_kind(const Certificate& certificate) {
  static constexpr const char* kNames[] = {"latency", "cut", "metric", "partition"};
  return kNames[certificate.index()];
}

double bytes_leaving(const Topology& topology, const Demand& demand, const std::vector<char>& inside) {
  // A pair is a contribution with one destination, so that one sum serves both kinds of demand.
  bool some_outside = false;
  for (std::size_t g = 0; g < topology.num_gpus() && !some_outside; ++g)
    some_outside = !inside[topology.node_of(GpuId(g)).index()];
  double bytes = 0;
  for (const Contribution& part : demand.contributions()) {
    if (!inside[topology.node_of(part.origin).index()]) continue;
    const bool leaves = for_everybody(topology, part)
                            ? some_outside
                            : std::any_of(part.destinations.begin(), part.destinations.end(),
                                          [&](GpuId g) { return !inside[topology.node_of(g).index()]; });
    if (leaves) bytes += part.bytes;
  }
  return bytes;
}

double bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  if (const auto* cut = std::get_if<CutCertificate>(&certificate)) {
    return bound(topology, demand, *cut, least_tail_us);
  }
  return sound_bound_of(topology, demand, certificate);
}

double sound_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  if (const auto* cut = std::get_if<CutCertificate>(&certificate)) {
    return bound(topology, demand, *cut, sound_tail_us);
  }
  if (const auto* latency = std::get_if<LatencyCertificate>(&certificate))
    return bound(topology, demand, *latency);
  if (std::holds_alternative<PartitionCertificate>(certificate))
    refuse_certificate("partitions are not checked yet");
  return bound(topology, demand, std::get<MetricCertificate>(certificate));
}

double whole_chunk_bound_of(const Topology& topology, const Demand& demand, const Certificate& certificate) {
  const auto* cut = std::get_if<CutCertificate>(&certificate);
  const std::optional<double> chunk_bytes = demand.uniform_chunk_bytes();
  if (!cut || !chunk_bytes) return sound_bound_of(topology, demand, certificate);
  return bound(topology, demand, *cut, sound_tail_us, *chunk_bytes);
}

}  // namespace rondo
