#include "route_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr int kUnreachable = std::numeric_limits<int>::max() / 4;

}  // namespace

RouteGraph::RouteGraph(const Topology& topology, const Sketch* sketch, double chunk_bytes)
    : topology_(topology),
      sketch_(sketch),
      table_(topology),
      out_(topology.num_gpus()),
      node_(topology.num_gpus()),
      local_(topology.num_gpus()),
      distance_(topology.num_gpus() * topology.num_gpus(), kUnreachable),
      between_(topology.num_gpus() * topology.num_gpus(), -1) {
  const std::size_t gpus = topology.num_gpus();
  std::map<int, int> count;
  for (std::size_t g = 0; g < gpus; ++g) {
    const int chassis = topology.node(topology.node_of(GpuId(g))).chassis.value_or(0);
    const bool is_one = sketch != nullptr && sketch->nodes == 1;
    node_[g] = is_one ? 0 : chassis;
    local_[g] = count[node_[g]]++;
  }
  for (std::size_t h = 0; h < table_.hops().size(); ++h) {
    const Hop& hop = table_.hops()[h];
    int& w = between_[hop.src.index() * gpus + hop.dst.index()];
    if (w < 0) {
      w = static_cast<int>(ways_.size());
      out_[hop.src.index()].push_back(w);
      ways_.push_back({hop.src, hop.dst, {}, node_of(hop.src) != node_of(hop.dst)});
    }
    std::vector<int>& hops = ways_[index(w)].hops;
    const double us = hop.duration_us(chunk_bytes);
    if (!hops.empty() && us < table_.hop(hops.front()).duration_us(chunk_bytes) * (1 - 1e-9)) hops.clear();
    if (hops.empty() || us <= table_.hop(hops.front()).duration_us(chunk_bytes) * (1 + 1e-9))
      hops.push_back(static_cast<int>(h));
  }
  for (Way& way : ways_) {
    if (sketch == nullptr || way.leaves_node) continue;
    for (std::size_t s = 0; s < sketch->switches.size(); ++s) {
      const std::vector<int>& members = sketch->switches[s];
      const auto has = [&](GpuId g) { return std::ranges::find(members, local_of(g)) != members.end(); };
      if (has(way.src) && has(way.dst)) way.peers = sketch->peers[s];
    }
  }
  for (std::size_t from = 0; from < gpus; ++from) {
    std::vector<GpuId> reached{GpuId(from)};
    distance_[from * gpus + from] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const int w : out_of(reached[i])) {
        int& there = distance_[from * gpus + way(w).dst.index()];
        if (there < kUnreachable) continue;
        there = distance(GpuId(from), reached[i]) + 1;
        reached.push_back(way(w).dst);
      }
    }
  }
}

int RouteGraph::between(GpuId src, GpuId dst) const {
  return between_[src.index() * topology_.num_gpus() + dst.index()];
}

std::vector<char> RouteGraph::allowed(const Demand& demand, ChunkId chunk) const {
  const GpuId source = demand.origin(chunk);
  std::vector<char> on_path(topology_.num_gpus(), 0);
  for (std::size_t g = 0; g < on_path.size(); ++g) {
    for (const GpuId d : demand.destinations(chunk)) {
      if (distance(source, GpuId(g)) + distance(GpuId(g), d) == distance(source, d)) on_path[g] = 1;
    }
  }
  const auto may_leave = [&](GpuId sender) {
    if (sketch_ == nullptr || sketch_->relays.empty()) return true;
    const auto served = sketch_->relays.find(local_of(sender));
    return served != sketch_->relays.end() &&
           std::ranges::find(served->second, local_of(source)) != served->second.end();
  };
  // A sender that the sketch names may be no GPU of a shortest path.
  if (sketch_ != nullptr && !sketch_->relays.empty()) {
    for (const Way& way : ways_) {
      if (way.leaves_node && node_of(way.src) == node_of(source) && may_leave(way.src))
        on_path[way.src.index()] = on_path[way.dst.index()] = 1;
    }
  }
  std::vector<char> allowed(ways_.size(), 0);
  for (std::size_t w = 0; w < ways_.size(); ++w) {
    const Way& way = ways_[w];
    if (on_path[way.src.index()] == 0 || on_path[way.dst.index()] == 0 || way.dst == source) continue;
    if (distance(source, way.dst) < distance(source, way.src)) continue;
    // What has left its node does not come back.
    if (way.leaves_node && node_of(way.dst) == node_of(source)) continue;
    if (way.leaves_node && node_of(way.src) == node_of(source) && !may_leave(way.src)) continue;
    allowed[w] = 1;
  }
  return allowed;
}

}  // namespace rondo
