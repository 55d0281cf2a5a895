#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "rondo/core/error.hpp"
#include "transfers.hpp"

namespace rondo::lowering {
namespace {

struct Place {
  int row = 0;
  int column = 0;
};

/// Where the GPUs stand: chassis by local number, or as near to a square as their number allows.
std::vector<Place> grid_of(const Topology& topology) {
  const std::size_t gpus = topology.num_gpus();
  std::map<int, int> members;
  std::vector<Place> places(gpus);
  for (std::size_t g = 0; g < gpus; ++g) {
    const int chassis = topology.node(topology.node_of(GpuId(g))).chassis.value_or(-1);
    places[g] = {.row = chassis, .column = members[chassis]++};
  }
  const bool even = std::all_of(members.begin(), members.end(), [&](const auto& chassis) {
    return chassis.second == members.begin()->second;
  });
  if (members.size() > 1 && even) return places;
  std::size_t side = 1;
  while (side * side < gpus) ++side;
  for (std::size_t g = 0; g < gpus; ++g) {
    places[g] = {.row = static_cast<int>(g / side), .column = static_cast<int>(g % side)};
  }
  return places;
}

/// The GPUs that each GPU reaches with only switches between.
std::vector<std::set<GpuId>> neighbours_of(const Topology& topology) {
  std::vector<std::set<GpuId>> neighbours(topology.num_gpus());
  for (std::size_t g = 0; g < neighbours.size(); ++g) {
    std::vector<NodeId> open = {topology.node_of(GpuId(g))};
    std::set<NodeId> seen(open.begin(), open.end());
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      for (const LinkId link : topology.out_links(node)) {
        const NodeId next = topology.link(link).dst;
        if (!seen.insert(next).second) continue;
        if (topology.is_gpu(next)) {
          neighbours[g].insert(topology.gpu_of(next));
        } else {
          open.push_back(next);
        }
      }
    }
  }
  return neighbours;
}

std::size_t most_peers(const std::vector<Delivery>& deliveries, std::size_t gpus) {
  std::vector<std::set<GpuId>> out(gpus), in(gpus);
  std::size_t most = 0;
  for (const Delivery& d : deliveries) {
    auto& to = out[d.src.index()];
    auto& from = in[d.dst.index()];
    to.insert(d.dst);
    from.insert(d.src);
    most = std::max({most, to.size(), from.size()});
  }
  return most;
}

}  // namespace

std::vector<Delivery> limit_peers(const Topology& topology, std::vector<Delivery> deliveries, int max_peers) {
  const std::size_t before = most_peers(deliveries, topology.num_gpus());
  if (before <= static_cast<std::size_t>(max_peers)) return deliveries;
  if (std::ranges::any_of(deliveries, [](const Delivery& d) { return d.op == SendOp::reduce; })) {
    throw Error(ExitCode::unavailable,
                fmt::format("--max-peers {}: the schedule has GPUs with {} peers, and partial sums cannot be "
                            "relayed over GPUs that add to sums of their own; use an engine with fewer peers",
                            max_peers, before));
  }
  const std::vector<Place> places = grid_of(topology);
  const std::vector<std::set<GpuId>> neighbours = neighbours_of(topology);
  std::map<std::pair<int, int>, GpuId> at_place;
  for (std::size_t g = 0; g < places.size(); ++g) {
    at_place[{places[g].row, places[g].column}] = GpuId{g};
  }
  const auto relay_between = [&](GpuId src, GpuId dst) {
    const Place from = places[src.index()];
    const Place to = places[dst.index()];
    for (const auto& [row, column] : {std::pair(from.row, to.column), std::pair(to.row, from.column)}) {
      const auto found = at_place.find({row, column});
      if (found == at_place.end()) continue;
      const GpuId relay = found->second;
      if (neighbours[src.index()].contains(relay) && neighbours[relay.index()].contains(dst)) {
        return relay;
      }
    }
    throw Error(
        ExitCode::unavailable,
        fmt::format("--max-peers {}: GPU {} sends to {} GPUs, and no GPU relays from {} to {} on this "
                    "fabric; use an engine or a fabric without a switch between all GPUs",
                    max_peers, src.value, before, src.value, dst.value));
  };

  std::vector<Delivery> relayed;
  for (const Delivery& d : deliveries) {
    const Place from = places[d.src.index()];
    const Place to = places[d.dst.index()];
    if (from.row == to.row || from.column == to.column) {
      relayed.push_back(d);
      continue;
    }
    Delivery first = d, second = d;
    first.dst = second.src = relay_between(d.src, d.dst);
    first.arrival_us = second.start_us = (d.start_us + d.arrival_us) / 2;
    relayed.push_back(first);
    relayed.push_back(second);
  }
  const std::size_t after = most_peers(relayed, topology.num_gpus());
  if (after > static_cast<std::size_t>(max_peers)) {
    throw Error(ExitCode::unavailable,
                fmt::format("--max-peers is {}, but relaying within rows and columns leaves {} peers (the "
                            "schedule has {}); allow at least {}",
                            max_peers, after, before, after));
  }
  return relayed;
}

}  // namespace rondo::lowering
