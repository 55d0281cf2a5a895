#include "rondo/decomp/decomposition.hpp"

#include <metis.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

constexpr int kDefaultShares = 4;
constexpr std::size_t kGpusOfCluster = 8;

/// Numbers clusters 0, 1, ... in the order of their first GPU.
std::vector<int> renumbered(const std::vector<int>& cluster) {
  std::map<int, int> number;
  std::vector<int> result;
  for (const int c : cluster)
    result.push_back(number.try_emplace(c, static_cast<int>(number.size())).first->second);
  return result;
}

int count(const std::vector<int>& clusters) {
  return clusters.empty() ? 0 : *std::max_element(clusters.begin(), clusters.end()) + 1;
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
  return count(chassis) < 2 ? std::vector<int>{} : chassis;
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

std::vector<int> clusters_of(const Topology& topology, int parts, std::uint64_t seed) {
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
  if (parts > 0 && parts != count(chassis)) {
    throw Error(ExitCode::usage, "--parts is " + std::to_string(parts) + ", but ncflow takes the fabric's " +
                                     std::to_string(count(chassis)) +
                                     " chassis as its parts; leave --parts out");
  }
  return chassis;
}

}  // namespace

Decomposition decompose_whole(const Topology&, const Demand&, int, std::uint64_t) {
  return {"none", {{Part{}}}};
}

Decomposition decompose_pop(const Topology&, const Demand& demand, int parts, std::uint64_t seed) {
  const int shares = parts > 0 ? parts : kDefaultShares;
  Decomposition result{"pop", {{}}};
  for (int i = 0; i < shares; ++i) {
    Part part;
    part.name = "pop " + std::to_string(i + 1) + " of " + std::to_string(shares);
    part.share = i;
    part.shares = shares;
    result.stages.front().push_back(part);
  }
  // A contribution's chunks go round, from a part chosen at random: all parts get equally much of large ones.
  Random random(seed);
  std::vector<std::size_t> order(demand.contributions().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(std::span(order));
  result.share_of_chunk.resize(demand.num_chunks());
  const auto chunks = static_cast<std::size_t>(demand.chunks_per_contribution());
  std::size_t next = 0;
  for (const std::size_t i : order) {
    for (std::size_t c = i * chunks; c < (i + 1) * chunks; ++c) {
      result.share_of_chunk[c] = static_cast<int>(next++ % static_cast<std::size_t>(shares));
    }
  }
  return result;
}

Decomposition decompose_ncflow(const Topology& topology, const Demand&, int parts, std::uint64_t seed) {
  Decomposition result{"ncflow", {{}, {}}, clusters_of(topology, parts, seed)};
  result.stages[0].push_back({"between clusters", Part::Where::between_clusters});
  for (int c = 0; c < count(result.cluster_of_gpu); ++c) {
    result.stages[1].push_back({"cluster " + std::to_string(c), Part::Where::inside_cluster, c});
  }
  return result;
}

bool decides(const Decomposition& decomposition, const Part& part, GpuId src, GpuId dst) {
  if (part.where == Part::Where::everywhere) return true;
  const int from = decomposition.cluster_of_gpu[src.index()];
  const int to = decomposition.cluster_of_gpu[dst.index()];
  return part.where == Part::Where::between_clusters ? from != to : from == to && from == part.cluster;
}

}  // namespace rondo
