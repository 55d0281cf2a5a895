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
std::vector<std::set<int>> neighbours_of(const Topology& topology) {
  std::vector<std::set<int>> neighbours(topology.num_gpus());
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
          neighbours[g].insert(topology.gpu_of(next).value);
        } else {
          open.push_back(next);
        }
      }
    }
  }
  return neighbours;
}

std::size_t most_peers(const std::vector<Transfer>& transfers, std::size_t gpus) {
  std::vector<std::set<int>> out(gpus), in(gpus);
  std::size_t most = 0;
  for (const Transfer& t : transfers) {
    auto& to = out[static_cast<std::size_t>(t.src)];
    auto& from = in[static_cast<std::size_t>(t.dst)];
    to.insert(t.dst);
    from.insert(t.src);
    most = std::max({most, to.size(), from.size()});
  }
  return most;
}

}  // namespace

std::vector<Transfer> limit_peers(const Topology& topology, std::vector<Transfer> transfers, int max_peers) {
  const std::size_t before = most_peers(transfers, topology.num_gpus());
  if (before <= static_cast<std::size_t>(max_peers)) return transfers;
  const std::vector<Place> places = grid_of(topology);
  const std::vector<std::set<int>> neighbours = neighbours_of(topology);
  std::map<std::pair<int, int>, int> at_place;
  for (std::size_t g = 0; g < places.size(); ++g) {
    at_place[{places[g].row, places[g].column}] = static_cast<int>(g);
  }
  const auto relay_between = [&](int src, int dst) {
    const Place from = places[static_cast<std::size_t>(src)];
    const Place to = places[static_cast<std::size_t>(dst)];
    for (const auto& [row, column] : {std::pair(from.row, to.column), std::pair(to.row, from.column)}) {
      const auto found = at_place.find({row, column});
      if (found == at_place.end()) continue;
      const int relay = found->second;
      if (neighbours[static_cast<std::size_t>(src)].contains(relay) &&
          neighbours[static_cast<std::size_t>(relay)].contains(dst)) {
        return relay;
      }
    }
    throw Error(
        ExitCode::unavailable,
        fmt::format("--max-peers {}: GPU {} sends to {} GPUs, and no GPU relays from {} to {} on this "
                    "fabric; use an engine or a fabric without a switch between all GPUs",
                    max_peers, src, before, src, dst));
  };

  std::vector<Transfer> relayed;
  for (const Transfer& t : transfers) {
    const Place from = places[static_cast<std::size_t>(t.src)];
    const Place to = places[static_cast<std::size_t>(t.dst)];
    if (from.row == to.row || from.column == to.column) {
      relayed.push_back(t);
      continue;
    }
    Transfer first = t, second = t;
    first.dst = second.src = relay_between(t.src, t.dst);
    first.arrival_us = second.start_us = (t.start_us + t.arrival_us) / 2;
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
