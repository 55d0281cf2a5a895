#include "rondo/core/early_delivery.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace rondo {

double early_delivery(const Topology& topology, const Demand& demand, std::span<const Send> sends,
                      double epoch_us, int epochs) {
  // By (chunk, GPU), the first arrival.
  std::map<std::pair<ChunkId, GpuId>, double> arrival_us;
  for (const Send& send : sends) {
    const NodeId to = topology.link(send.link).dst;
    if (!topology.is_gpu(to)) continue;
    const auto [at, is_new] = arrival_us.try_emplace({send.chunk, topology.gpu_of(to)}, send.arrival_us);
    if (!is_new) at->second = std::min(at->second, send.arrival_us);
  }
  std::vector<double> from(static_cast<std::size_t>(epochs) + 1, 0);  // the sum from an epoch on
  for (std::size_t k = from.size() - 1; k-- > 0;) from[k] = from[k + 1] + 1 / static_cast<double>(k + 1);
  constexpr double kRounding = 1e-6;  // of an epoch
  double sum = 0;
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId{c})) {
      const auto found = arrival_us.find({ChunkId{c}, g});
      if (found == arrival_us.end()) continue;
      const double epoch = std::max(0.0, std::ceil(found->second / epoch_us - kRounding) - 1);
      if (epoch < epochs) sum += from[static_cast<std::size_t>(epoch)];
    }
  }
  return sum;
}

}  // namespace rondo
