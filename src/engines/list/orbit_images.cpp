#include "orbit_images.hpp"

#include <algorithm>
#include <tuple>

namespace rondo {

Schedule images_of(const std::vector<Move>& moves, const Topology& topology, const FreeGroup& group,
                   const OrbitHops& hops, const Demand& demand) {
  struct Part {
    double start_us;
    const Move* move;
    const HopLink* link;
  };
  const double bytes = *demand.uniform_chunk_bytes();
  Schedule schedule;
  std::vector<Part> parts;
  for (const Move& move : moves) {
    const Hop& hop = hops.hop(move.hop).hop;
    for (const HopLink& part : hop.links) {
      parts.push_back({move.start_us + part.offset_us_of(bytes), &move, &part});
    }
    schedule.finish_us = std::max(schedule.finish_us, move.start_us + hop.duration_us(bytes));
  }
  std::ranges::stable_sort(parts, {}, &Part::start_us);

  const std::size_t order = group.order();
  const auto chunks = static_cast<std::size_t>(demand.chunks_per_contribution());
  std::vector<std::size_t> contribution(demand.num_gpus());  // per origin
  for (std::size_t i = 0; i < contribution.size(); ++i)
    contribution[demand.contributions()[i].origin.index()] = i;
  schedule.sends.reserve(parts.size() * order);
  for (std::size_t i = 0; i < parts.size();) {
    const auto begin = static_cast<std::ptrdiff_t>(schedule.sends.size());
    const double start = parts[i].start_us;
    for (; i < parts.size() && parts[i].start_us == start; ++i) {
      const auto& [start_us, move, part] = parts[i];
      const OrbitHop& hop = hops.hop(move->hop);
      const std::size_t chunk = move->chunk.index();
      const double end = start + part->occupied_us(bytes);
      const std::size_t q = chunk / order;
      for (std::size_t d = 0; d < order; ++d) {  // the sender is element d
        const int receiver = group.product(static_cast<int>(d), hop.shift);
        const int element = group.product(receiver, static_cast<int>(chunk % order));
        const GpuId origin = group.gpu(static_cast<int>(q / chunks), element);
        schedule.sends.push_back({ChunkId{contribution[origin.index()] * chunks + q % chunks},
                                  group.image(part->link, static_cast<int>(d)), start, end,
                                  end + topology.link(part->link).latency_us});
      }
    }
    std::sort(schedule.sends.begin() + begin, schedule.sends.end(), [](const Send& a, const Send& b) {
      return std::tie(a.link, a.chunk) < std::tie(b.link, b.chunk);
    });
  }
  return schedule;
}

}  // namespace rondo
