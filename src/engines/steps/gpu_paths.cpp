#include "gpu_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

Digraph graph_of(const HopTable& hops) {
  Digraph graph{static_cast<int>(hops.num_gpus()), {}};
  for (const Hop& hop : hops.hops()) graph.arcs.push_back({hop.src.value, hop.dst.value});
  return graph;
}

}  // namespace

GpuPaths::GpuPaths(const HopTable& hops, double bytes)
    : hops_(hops), fastest_(hops.num_gpus()), search_(graph_of(hops)) {
  std::vector<double> length;
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    const Hop& hop = hops.hops()[h];
    length.push_back(hop.duration_us(bytes));
    std::vector<int>& known = fastest_[hop.src.index()][hop.dst.value];
    if (!known.empty() && length.back() < hops.hop(known.front()).duration_us(bytes) * (1 - 1e-9))
      known.clear();
    if (known.empty() || length.back() <= hops.hop(known.front()).duration_us(bytes) * (1 + 1e-9))
      known.push_back(static_cast<int>(h));
  }
  search_.set_lengths(length);
}

int GpuPaths::one_of(GpuId from, GpuId to, std::size_t turn) const {
  const std::vector<int>& equal = fastest_[from.index()].at(to.value);
  return equal[turn % equal.size()];
}

std::vector<int> GpuPaths::between(GpuId from, GpuId to, std::size_t turn) {
  if (fastest_[from.index()].contains(to.value)) return {one_of(from, to, turn)};
  const auto [paths, is_new] = paths_.try_emplace(from.value);
  if (is_new) paths->second = search_.from(from.value);
  if (!std::isfinite(paths->second.distance[to.index()])) {
    throw Error(ExitCode::unavailable,
                fmt::format("no path leads from GPU {} to GPU {}; use --engine auto", from.value, to.value));
  }
  std::vector<int> path;
  for (GpuId at = to; at != from;) {
    const Hop& last = hops_.hop(paths->second.last_arc[at.index()]);
    path.push_back(one_of(last.src, at, turn));
    at = last.src;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace rondo
