#include "features.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rondo/catalogue/times.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"

namespace rondo::cli {
namespace {

/// At so many equal steps of the time, what is delivered by then.
constexpr int kCurvePoints = 10;

Json extremes(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return {{"least", least}, {"mean", sum / static_cast<double>(values.size())}, {"most", most}};
}

/// Latencies between all pairs of GPUs.
Json pair_latencies(const Topology& topology) {
  Digraph graph{static_cast<int>(topology.num_nodes()), {}};
  std::vector<double> latency_us;
  for (const Link& link : topology.links()) {
    graph.arcs.push_back({link.src.value, link.dst.value});
    latency_us.push_back(link.latency_us);
  }
  std::vector<double> distances;
  const int num_gpus = static_cast<int>(topology.num_gpus());
  for (int a = 0; a < num_gpus; ++a) {
    const auto paths = shortest_paths(graph, latency_us, topology.node_of(GpuId(a)).value);
    for (int b = 0; b < num_gpus; ++b) {
      const double distance = paths.distance[topology.node_of(GpuId(b)).index()];
      if (a != b && std::isfinite(distance)) distances.push_back(distance);
    }
  }
  return distances.empty() ? Json() : extremes(distances);
}

/// Of links between two nodes of one chassis, and of all others.
Json bandwidths(const Topology& topology) {
  std::vector<double> inside;
  std::vector<double> outside;
  for (const Link& link : topology.links()) {
    const auto a = topology.node(link.src).chassis;
    const auto b = topology.node(link.dst).chassis;
    (a && a == b ? inside : outside).push_back(link.bandwidth_GBps);
  }
  Json json = {{"inside_chassis", inside.empty() ? Json() : extremes(inside)},
               {"elsewhere", outside.empty() ? Json() : extremes(outside)},
               {"ratio", nullptr}};
  if (!inside.empty() && !outside.empty())
    json["ratio"] = json["inside_chassis"]["mean"].get<double>() / json["elsewhere"]["mean"].get<double>();
  return json;
}

Json utilisation(const ProvenSchedule& proven) {
  const Topology& topology = proven.topology;
  std::vector<double> bytes(topology.num_links(), 0);
  for (const Send& send : proven.schedule.sends) bytes[send.link.index()] += proven.demand.bytes(send.chunk);
  std::vector<double> shares;
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    const double carried = topology.links()[l].bandwidth_GBps * 1e3 * proven.schedule.finish_us;
    shares.push_back(bytes[l] / carried);
  }
  return extremes(shares);
}

/// Shares of all bytes that have arrived where they are wanted; of sums the last part counts.
Json delivered(const ProvenSchedule& proven) {
  const Demand& demand = proven.demand;
  std::map<std::pair<ChunkId, GpuId>, double> arrival;
  for (const Send& send : proven.schedule.sends) {
    const NodeId end = proven.topology.link(send.link).dst;
    if (!proven.topology.is_gpu(end)) continue;
    const GpuId gpu = proven.topology.gpu_of(end);
    if (!std::ranges::binary_search(demand.destinations(send.chunk), gpu)) continue;
    const auto [at, is_new] = arrival.try_emplace({send.chunk, gpu}, send.arrival_us);
    const bool is_sum = demand.contribution(send.chunk).reduce;
    if (!is_new)
      at->second = is_sum ? std::max(at->second, send.arrival_us) : std::min(at->second, send.arrival_us);
  }
  double all = 0;
  std::vector<double> by(kCurvePoints, 0);
  for (const auto& [where, arrival_us] : arrival) {
    const double bytes = demand.bytes(where.first);
    all += bytes;
    for (int p = 0; p < kCurvePoints; ++p) {
      const double until_us = proven.schedule.finish_us * (p + 1) / kCurvePoints * (1 + 1e-9);
      if (arrival_us <= until_us) by[static_cast<std::size_t>(p)] += bytes;
    }
  }
  for (double& share : by) share /= all;
  return by;
}

/// How much longer the bound is where nothing may be copied on its way: AllGather as AllToAll of the same
/// parts, Broadcast as Scatter of one buffer a GPU. Null for others.
Json copy_benefit(const catalogue::Series& series, const std::shared_ptr<const Topology>& topology,
                  const catalogue::Cell& cell) {
  catalogue::Series apart = series;
  double size_bytes = cell.size_bytes;
  if (series.collective == Collective::allgather) {
    apart.collective = Collective::alltoall;
  } else if (series.collective == Collective::broadcast) {
    apart.collective = Collective::scatter;
    size_bytes *= static_cast<double>(series.group.empty() ? topology->num_gpus() : series.group.size());
  } else {
    return nullptr;
  }
  const auto alone = make_local_communicator();
  const Demand demand = demand_of(apart, size_bytes, topology->num_gpus());
  return rondo::bound({topology, demand}, {*alone}).best().us / cell.bound->us;
}

Json cell_features(const catalogue::Folder& folder, const std::shared_ptr<const Topology>& topology,
                   const catalogue::Series& series, const catalogue::Cell& cell) {
  const ProvenSchedule proven = catalogue::timed_at(folder, series, cell.schedule, cell.size_bytes);
  return {{"size_bytes", cell.size_bytes},
          {"schedule", cell.schedule},
          {"finish_us", cell.finish_us},
          {"lower_bound_us", cell.bound->us},
          {"lower_bound_kind", certificate_kind(cell.bound->certificate)},
          {"gap", cell.gap()},
          {"algorithm_bandwidth_GBps", cell.size_bytes / cell.finish_us / 1e3},
          {"sends", proven.schedule.sends.size()},
          {"chunks", proven.demand.num_chunks()},
          {"link_utilisation", utilisation(proven)},
          {"delivered", delivered(proven)},
          {"copy_benefit", copy_benefit(series, topology, cell)}};
}

}  // namespace

Json features_of(const catalogue::Folder& folder, const Topology& topology,
                 const std::vector<catalogue::Table>& tables) {
  const auto shared = std::make_shared<const Topology>(topology);
  Json series = Json::array();
  for (const catalogue::Table& table : tables) {
    Json crossings = Json::array();
    for (const catalogue::Bin& bin : table.bins) {
      if (bin.border) crossings.push_back(bin.to_bytes);
    }
    Json cells = Json::array();
    for (const catalogue::Cell& cell : table.cells) {
      if (!cell.is_refused()) cells.push_back(cell_features(folder, shared, table.series, cell));
    }
    std::vector<int> group;
    for (const GpuId gpu : table.series.group) group.push_back(gpu.value);
    series.push_back({{"collective", to_string(table.series.collective)},
                      {"root", table.series.root.value},
                      {"group", group},
                      {"relays", table.series.relays},
                      {"crossing_bytes", std::move(crossings)},
                      {"cells", std::move(cells)}});
  }
  std::set<int> chassis;
  for (const Node& node : topology.nodes()) {
    if (node.kind == NodeKind::gpu && node.chassis) chassis.insert(*node.chassis);
  }
  return {{"format", "rondo-features"},
          {"version", 1},
          {"fabric",
           {{"fingerprint", catalogue::fingerprint(topology)},
            {"name", topology.name()},
            {"gpus", topology.num_gpus()},
            {"switches", topology.num_nodes() - topology.num_gpus()},
            {"links", topology.num_links()},
            {"chassis", chassis.size()},
            {"bandwidth_GBps", bandwidths(topology)},
            {"pair_latency_us", pair_latencies(topology)}}},
          {"series", std::move(series)}};
}

}  // namespace rondo::cli
