#include "cluster_nodes.hpp"

#include <set>

namespace rondo {

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
