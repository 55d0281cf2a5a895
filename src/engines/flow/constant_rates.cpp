#include "constant_rates.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// The chunks of a contribution on one route.
using Stream = std::vector<ChunkId>;

class ConstantRates {
 public:
  ConstantRates(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                const RoutedChunks& routed)
      : topology_(topology), hops_(hops), demand_(demand), routed_(routed) {}

  Schedule run() {
    std::map<std::pair<std::size_t, std::vector<int>>, Stream> streams;
    const auto chunks = static_cast<std::size_t>(demand_.chunks_per_contribution());
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c)
      streams[{c / chunks, routed_.routes[index(routed_.route_of_chunk[c])].hops}].push_back(ChunkId{c});
    for (const auto& [key, stream] : streams) add(key.second, stream);
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  void add(const std::vector<int>& route, const Stream& stream) {
    const double ready_us = demand_.ready_us(stream.front());
    if (route.size() == 1) {
      send(hops_[index(route.front())], stream, routed_.greatest_load_us, ready_us);
      return;
    }
    const double each_us = routed_.greatest_load_us / static_cast<double>(stream.size());
    double start_us = ready_us;
    for (const int h : route) {
      double arrival_us = start_us;
      for (std::size_t i = 0; i < stream.size(); ++i) {
        const double at_us = start_us + each_us * static_cast<double>(i);
        const double there_us = send(hops_[index(h)], {stream[i]}, each_us, at_us);
        if (i == 0) arrival_us = there_us;
      }
      start_us = arrival_us;
    }
  }

  /// The chunks together over the hop, each link in `occupied_us`; returns when they arrive.
  double send(const Hop& whole, const Stream& chunks, double occupied_us, double start_us) {
    const double bytes = demand_.bytes(chunks.front()) * static_cast<double>(chunks.size());
    const Hop hop = slowed(whole, std::max(1.0, occupied_us / whole.links.front().occupied_us(bytes)));
    append_sends(topology_, hop, chunks, bytes, start_us, schedule_.sends);
    const double arrival_us = start_us + hop.duration_us(bytes);
    schedule_.finish_us = std::max(schedule_.finish_us, arrival_us);
    return arrival_us;
  }

  const Topology& topology_;
  const std::vector<Hop>& hops_;
  const Demand& demand_;
  const RoutedChunks& routed_;
  Schedule schedule_;
};

}  // namespace

Schedule at_constant_rates(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                           const RoutedChunks& routed) {
  return ConstantRates(topology, hops, demand, routed).run();
}

}  // namespace rondo
