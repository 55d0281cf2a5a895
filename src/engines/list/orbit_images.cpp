#include "orbit_images.hpp"

#include <algorithm>
#include <tuple>

namespace rondo {

OrbitImages::OrbitImages(std::shared_ptr<const OrbitFabric> fabric, const std::vector<Move>& moves,
                         const Demand& demand)
    : fabric_(std::move(fabric)), demand_(demand) {
  const FreeGroup& group = fabric_->group;
  const auto order = static_cast<int>(group.order());
  const double bytes = *demand.uniform_chunk_bytes();
  for (const Move& move : moves) {
    const OrbitHop& of_orbit = fabric_->hops.hop(move.hop);
    const Hop& hop = of_orbit.hop;
    const int to_origin = group.product(of_orbit.shift, move.chunk.value % order);  // from the sender
    for (const HopLink& part : hop.links) {
      const double start = move.start_us + part.offset_us_of(bytes);
      const double end = start + part.occupied_us(bytes);
      parts_.push_back({start, end, end + fabric_->topology->link(part.link).latency_us, part.link,
                        move.chunk.value / order, group.inverse(to_origin)});
    }
    finish_us_ = std::max(finish_us_, move.start_us + hop.duration_us(bytes));
  }
  std::ranges::stable_sort(parts_, {}, &Part::start_us);
}

/// One image of a part is on each link of an orbit.
std::size_t OrbitImages::most_sends_on_a_link() const {
  std::vector<std::size_t> count(fabric_->group.num_link_orbits(), 0);
  for (const Part& part : parts_) ++count[static_cast<std::size_t>(fabric_->group.place(part.link).orbit)];
  return *std::ranges::max_element(count);
}

std::vector<Send> OrbitImages::sends_of(ChunkRange chunks) const {
  const FreeGroup& group = fabric_->group;
  const auto each = static_cast<std::size_t>(demand_.chunks_per_contribution());
  struct Origin {
    int element;
    std::size_t first_chunk;
  };
  std::vector<std::vector<Origin>> origins(group.num_gpu_orbits());
  for (std::size_t i = chunks.first / each; i * each < chunks.end; ++i) {
    const FreeGroup::Place place = group.place(demand_.contributions()[i].origin);
    origins[static_cast<std::size_t>(place.orbit)].push_back({place.element, i * each});
  }
  std::vector<Send> sends;
  sends.reserve(num_sends() / demand_.num_chunks() * chunks.size());
  for (std::size_t i = 0; i < parts_.size();) {
    const auto begin = static_cast<std::ptrdiff_t>(sends.size());
    const double start = parts_[i].start_us;
    for (; i < parts_.size() && parts_[i].start_us == start; ++i) {
      const Part& part = parts_[i];
      const auto q = static_cast<std::size_t>(part.q);
      for (const Origin& origin : origins[q / each]) {
        const ChunkId chunk{origin.first_chunk + q % each};
        if (!chunks.contains(chunk)) continue;
        const int sender = group.product(origin.element, part.inverse);
        sends.push_back({chunk, group.image(part.link, sender), start, part.end_us, part.arrival_us});
      }
    }
    std::sort(sends.begin() + begin, sends.end(), [](const Send& a, const Send& b) {
      return std::tie(a.link, a.chunk) < std::tie(b.link, b.chunk);
    });
  }
  return sends;
}

}  // namespace rondo
