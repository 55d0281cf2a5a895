#include "clusters.hpp"

#include <metis.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr std::size_t kGpusOfCluster = 8;

/// Numbers clusters 0, 1, ... in the order of their first GPU.
std::vector<int> renumbered(const std::vector<int>& cluster) {
  std::map<int, int> number;
  std::vector<int> result;
  for (const int c : cluster)
    result.push_back(number.try_emplace(c, static_cast<int>(number.size())).first->second);
  return result;
}

/// Per GPU; empty where some GPU has no chassis or all have the same.
std::vector<int> chassis_of_gpus(const Topology& topology) {
  std::vector<int> chassis;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const Node& node = topology.node(topology.node_of(GpuId{g}));
    if (!node.chassis) return {};
    chassis.push_back(*node.chassis);
  }
  chassis = renumbered(chassis);
  return num_clusters(chassis) < 2 ? std::vector<int>{} : chassis;
}

/// Parts of the topology with equally many GPUs and little bandwidth between them, by recursive bisection:
/// the k-way method leaves parts of small topologies empty. Close to one GPU a part there may still be fewer.
std::vector<int> metis_clusters(const Topology& topology, int parts, std::uint64_t seed) {
  const std::size_t nodes = topology.num_nodes();
  std::vector<std::map<idx_t, double>> neighbours(nodes);
  double slowest = 0;
  for (const Link& link : topology.links()) {
    neighbours[link.src.index()][link.dst.value] += link.bandwidth_GBps;
    neighbours[link.dst.index()][link.src.value] += link.bandwidth_GBps;
    slowest = slowest == 0 ? link.bandwidth_GBps : std::min(slowest, link.bandwidth_GBps);
  }
  std::vector<idx_t> offset{0};
  std::vector<idx_t> neighbour;
  std::vector<idx_t> weight;  // METIS takes integers
  std::vector<idx_t> is_gpu;
  for (std::size_t n = 0; n < nodes; ++n) {
    for (const auto& [m, bandwidth] : neighbours[n]) {
      neighbour.push_back(m);
      weight.push_back(static_cast<idx_t>(std::clamp(bandwidth / slowest, 1.0, 1e6)));
    }
    offset.push_back(static_cast<idx_t>(neighbour.size()));
    is_gpu.push_back(topology.is_gpu(NodeId{n}) ? 1 : 0);
  }
  auto num_nodes = static_cast<idx_t>(nodes);
  idx_t constraints = 1;
  idx_t num_parts = parts;
  idx_t cut = 0;
  std::array<idx_t, METIS_NOPTIONS> options;
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed % 1'000'000);
  std::vector<idx_t> part(nodes);
  if (METIS_PartGraphRecursive(&num_nodes, &constraints, offset.data(), neighbour.data(), is_gpu.data(),
                               nullptr, weight.data(), &num_parts, nullptr, nullptr, options.data(), &cut,
                               part.data()) != METIS_OK) {
    throw Error(ExitCode::internal,
                "METIS could not partition the fabric into " + std::to_string(parts) + " clusters");
  }
  std::vector<int> clusters;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g)
    clusters.push_back(part[topology.node_of(GpuId{g}).index()]);
  return renumbered(clusters);
}

}  // namespace

int num_clusters(const std::vector<int>& cluster_of) {
  return cluster_of.empty() ? 0 : *std::max_element(cluster_of.begin(), cluster_of.end()) + 1;
}

std::vector<int> clusters_of_gpus(const Topology& topology, int parts, std::uint64_t seed) {
  const auto gpus = static_cast<int>(topology.num_gpus());
  if (parts > gpus) {
    throw Error(ExitCode::usage, "--parts is " + std::to_string(parts) + ", but the fabric has " +
                                     std::to_string(gpus) + " GPUs; give at most as many parts");
  }
  std::vector<int> chassis = chassis_of_gpus(topology);
  if (chassis.empty()) {
    const int wanted = parts > 0 ? parts : std::max(2, gpus / static_cast<int>(kGpusOfCluster));
    return metis_clusters(topology, wanted, seed);
  }
  if (parts > 0 && parts != num_clusters(chassis)) {
    throw Error(ExitCode::usage, "--parts is " + std::to_string(parts) + ", but ncflow takes the fabric's " +
                                     std::to_string(num_clusters(chassis)) +
                                     " chassis as its parts; leave --parts out");
  }
  return chassis;
}

std::vector<int> clusters_of_nodes(const Topology& topology, const std::vector<int>& cluster_of_gpu) {
  std::vector<int> cluster(topology.num_nodes(), -1);
  for (std::size_t g = 0; g < cluster_of_gpu.size(); ++g)
    cluster[topology.node_of(GpuId{g}).index()] = cluster_of_gpu[g];
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::set<int>> around(cluster.size());
    for (const Link& link : topology.links()) {
      around[link.src.index()].insert(cluster[link.dst.index()]);
      around[link.dst.index()].insert(cluster[link.src.index()]);
    }
    for (std::size_t n = 0; n < cluster.size(); ++n) {
      if (cluster[n] >= 0 || around[n].size() != 1 || *around[n].begin() < 0) continue;
      cluster[n] = *around[n].begin();
      changed = true;
    }
  }
  return cluster;
}

double sum_of(const Shares& shares) {
  double sum = 0;
  for (const auto& [origin, bytes] : shares) sum += bytes;
  return sum;
}

}  // namespace rondo
