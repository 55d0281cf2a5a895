#include "relay_reservations.hpp"

#include <algorithm>
#include <iterator>

namespace rondo {
namespace {

/// Sums of bytes may be a little more than they should be.
constexpr double kRounding = 1e-9;

}  // namespace

RelayReservations::RelayReservations(const Topology& topology, const Demand& demand,
                                     const Deliveries& deliveries)
    : demand_(demand),
      chunks_each_(static_cast<std::size_t>(demand.chunks_per_contribution())),
      relays_(deliveries.receivers.size()),
      holds_(demand.num_chunks(), 0),
      end_us_(demand.num_chunks(), 0.0) {
  for (std::size_t g = 0; g < topology.num_gpus(); ++g)
    free_bytes_.push_back(topology.node(topology.node_of(GpuId(g))).relay_bytes * (1 + kRounding));
  for (std::size_t i = 0; i < relays_.size(); ++i) {
    const auto& destinations = demand.contributions()[i].destinations;
    std::ranges::set_difference(deliveries.receivers[i], destinations, std::back_inserter(relays_[i]));
    left_.insert(left_.end(), chunks_each_, deliveries.receivers[i].size());
  }
}

bool RelayReservations::may_enter(std::size_t chunk, GpuId receiver) const {
  if (holds_[chunk] != 0 || !std::ranges::binary_search(relays(chunk), receiver)) return true;
  const double bytes = demand_.bytes(ChunkId(chunk));
  return std::ranges::all_of(relays(chunk), [&](GpuId g) { return bytes <= free_bytes_[g.index()]; });
}

std::optional<double> RelayReservations::enter(std::size_t chunk, GpuId receiver, double end_us) {
  if (holds_[chunk] == 0 && std::ranges::binary_search(relays(chunk), receiver)) {
    holds_[chunk] = 1;
    for (const GpuId g : relays(chunk)) free_bytes_[g.index()] -= demand_.bytes(ChunkId(chunk));
  }
  end_us_[chunk] = std::max(end_us_[chunk], end_us);
  if (--left_[chunk] > 0 || holds_[chunk] == 0) return std::nullopt;
  return end_us_[chunk];
}

void RelayReservations::release(std::size_t chunk) {
  holds_[chunk] = 0;
  for (const GpuId g : relays(chunk)) free_bytes_[g.index()] += demand_.bytes(ChunkId(chunk));
}

}  // namespace rondo
