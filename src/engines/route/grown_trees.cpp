#include "grown_trees.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// The earliest way to every destination over links that carry little so far.
std::vector<int> grown_tree(const RouteGraph& graph, const Demand& demand, ChunkId chunk,
                            const WayLoads& loads) {
  const std::vector<char> allowed = graph.allowed(demand, chunk);
  const double bytes = demand.bytes(chunk);
  const std::size_t gpus = demand.num_gpus();
  std::vector<double> at_us(gpus, std::numeric_limits<double>::infinity());
  std::vector<int> last(gpus, -1);
  using Entry = std::pair<double, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  at_us[demand.origin(chunk).index()] = 0;
  open.emplace(0, demand.origin(chunk).value);
  while (!open.empty()) {
    const auto [us, g] = open.top();
    open.pop();
    if (us > at_us[index(g)]) continue;
    for (const int w : graph.out_of(GpuId(g))) {
      if (allowed[index(w)] == 0) continue;
      const double there = us + graph.hop_of(w).duration_us(bytes) + loads.most_us(w);
      double& known = at_us[graph.way(w).dst.index()];
      if (there >= known) continue;
      known = there;
      last[graph.way(w).dst.index()] = w;
      open.emplace(there, graph.way(w).dst.value);
    }
  }
  std::vector<int> tree;
  std::vector<char> is_in(gpus, 0);
  is_in[demand.origin(chunk).index()] = 1;
  for (const GpuId d : demand.destinations(chunk)) {
    std::vector<int> path;
    for (GpuId at = d; is_in[at.index()] == 0; at = graph.way(path.back()).src) {
      if (last[at.index()] < 0) {
        throw Error(
            ExitCode::unavailable,
            fmt::format("the sketch leaves no way for what GPU {} has for GPU {}: the sender that it names "
                        "for this GPU does not lead there",
                        demand.origin(chunk).value, d.value));
      }
      is_in[at.index()] = 1;
      path.push_back(last[at.index()]);
    }
    tree.insert(tree.end(), path.rbegin(), path.rend());
  }
  return tree;
}

}  // namespace

RouteTrees grown_trees(const RouteGraph& graph, const Demand& demand, const RouteOrbits& orbits,
                       bool& is_symmetric) {
  RouteTrees trees(demand.num_chunks());
  WayLoads loads(graph);
  is_symmetric = true;
  const auto keep = [&](ChunkId c, std::vector<int> tree) {
    for (const int w : tree) loads.add(w, demand.bytes(c));
    trees[c.index()] = std::move(tree);
  };
  for (std::size_t c = 0; c < trees.size(); ++c) {
    if (!trees[c].empty()) continue;
    keep(ChunkId(c), grown_tree(graph, demand, ChunkId(c), loads));
    std::vector<ChunkId> open{ChunkId(c)};
    while (!open.empty()) {
      const ChunkId from = open.back();
      open.pop_back();
      for (std::size_t t = 0; t < orbits.num_turns(); ++t) {
        const ChunkId to = orbits.image_of_chunk(t, from);
        if (!trees[to.index()].empty()) continue;
        std::vector<int> image;
        for (const int w : trees[from.index()]) image.push_back(orbits.image_of_way(t, w));
        const std::vector<char> allowed = graph.allowed(demand, to);
        if (std::ranges::any_of(image, [&](int w) { return w < 0 || allowed[index(w)] == 0; })) {
          is_symmetric = false;
          continue;
        }
        keep(to, std::move(image));
        open.push_back(to);
      }
    }
  }
  return trees;
}

}  // namespace rondo
