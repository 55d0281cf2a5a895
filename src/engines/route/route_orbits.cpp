#include "route_orbits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// The chunk with the image's source and destinations and the same place among chunks of such data.
std::vector<ChunkId> chunk_image(const Demand& demand, const std::vector<GpuId>& image,
                                 const Sketch::Turn& turn) {
  using Data = std::pair<GpuId, std::vector<GpuId>>;
  std::map<Data, std::vector<ChunkId>> equal;
  const auto data_of = [&](ChunkId c) { return Data{demand.origin(c), demand.contribution(c).destinations}; };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) equal[data_of(ChunkId(c))].push_back(ChunkId(c));
  std::vector<ChunkId> images(demand.num_chunks());
  for (const auto& [data, chunks] : equal) {
    Data there{image[data.first.index()], {}};
    for (const GpuId d : data.second) there.second.push_back(image[d.index()]);
    std::ranges::sort(there.second);
    const auto found = equal.find(there);
    if (found == equal.end() || found->second.size() != chunks.size()) {
      throw Error(
          ExitCode::bad_data,
          fmt::format(
              "symmetry_offsets has [{}, {}], which takes what GPU {} has to GPU {}; there the {} has "
              "no such data: leave the offset out",
              turn.offset, turn.group, data.first.value, there.first.value, to_string(demand.collective())));
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) images[chunks[i].index()] = found->second[i];
  }
  return images;
}

}  // namespace

RouteOrbits::RouteOrbits(const RouteGraph& graph, const Demand& demand)
    : num_ways_(graph.ways().size()),
      num_gpus_(demand.num_gpus()),
      first_gpu_(demand.num_chunks() * num_ways_),
      first_pair_(first_gpu_ + demand.num_chunks() * num_gpus_),
      parent_(first_pair_ + num_ways_) {
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  if (graph.sketch() == nullptr) return;
  for (const Sketch::Turn& turn : graph.sketch()->symmetry) {
    const std::vector<GpuId> image = image_of(num_gpus_, turn);
    const std::vector<ChunkId>& chunks = chunk_image_.emplace_back(chunk_image(demand, image, turn));
    std::vector<int>& ways = way_image_.emplace_back();
    for (const Way& way : graph.ways())
      ways.push_back(graph.between(image[way.src.index()], image[way.dst.index()]));
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::size_t w = 0; w < num_ways_; ++w) {
        const Way& way = graph.ways()[w];
        if (way.src.value / turn.group != way.dst.value / turn.group) continue;  // free between groups
        unite(c * num_ways_ + w, chunks[c].index() * num_ways_ + index(ways[w]));
        if (c == 0) unite(first_pair_ + w, first_pair_ + index(ways[w]));
      }
      for (std::size_t g = 0; g < num_gpus_; ++g)
        unite(first_gpu_ + c * num_gpus_ + g, first_gpu_ + chunks[c].index() * num_gpus_ + image[g].index());
    }
  }
}

}  // namespace rondo
