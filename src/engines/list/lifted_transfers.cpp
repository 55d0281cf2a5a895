#include "lifted_transfers.hpp"

#include <algorithm>
#include <tuple>

namespace rondo {

Schedule all_translations(const Topology& topology, const Translations& translations, const LiftedHops& hops,
                          const Demand& demand, const std::vector<Move>& moves) {
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

  const std::size_t order = translations.order();
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
      const LiftedHop& hop = hops.hop(move->hop);
      const std::size_t chunk = move->chunk.index();
      const double end = start + part->occupied_us(bytes);
      const std::size_t q = chunk / order;
      for (std::size_t d = 0; d < order; ++d) {  // the sender is element d
        const int receiver = translations.plus(static_cast<int>(d), hop.shift);
        const int element = translations.plus(static_cast<int>(chunk % order), receiver);
        const GpuId origin = translations.gpu(static_cast<int>(q / chunks), element);
        schedule.sends.push_back({ChunkId{contribution[origin.index()] * chunks + q % chunks},
                                  translations.image(part->link, static_cast<int>(d)), start, end,
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
