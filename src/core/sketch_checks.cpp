#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "refuse.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/sketch.hpp"

namespace rondo {

std::vector<std::string> Sketch::beyond_links() const {
  std::vector<std::string> fields;
  if (std::ranges::any_of(peers, [](Peers p) { return p != Peers::any; }))
    fields.emplace_back("intranode_sketch.switch_hyperedge_strategy");
  if (local == Local::minmax || local == Local::maxmin) fields.emplace_back("intranode_sketch.strategy");
  if (!relays.empty()) fields.emplace_back("internode_sketch.gpus_to_sender_rev_map");
  if (own_data_first) fields.emplace_back("internode_sketch.enforce_ordering");
  if (!symmetry.empty()) fields.emplace_back("symmetry_offsets");
  return fields;
}

std::vector<std::vector<GpuId>> gpus_of_nodes(const Topology& topology, int nodes) {
  std::map<int, std::vector<GpuId>> by_chassis;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g)
    by_chassis[topology.node(topology.node_of(GpuId(g))).chassis.value_or(0)].push_back(GpuId(g));
  std::vector<std::vector<GpuId>> gpus;
  if (nodes == 1)
    by_chassis = {{0, [&] {
                     std::vector<GpuId> all;
                     for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.emplace_back(g);
                     return all;
                   }()}};
  for (auto& [chassis, members] : by_chassis) gpus.push_back(std::move(members));
  const bool are_equal =
      std::ranges::all_of(gpus, [&](const auto& members) { return members.size() == gpus.front().size(); });
  if (static_cast<int>(gpus.size()) != nodes || !are_equal) {
    refuse(
        fmt::format("nnodes is {}, but '{}' has {} chassis{}; write the number of its chassis, which have to "
                    "be equal",
                    nodes, topology.name(), gpus.size(), are_equal ? "" : " of several sizes"));
  }
  return gpus;
}

std::vector<GpuId> image_of(std::size_t num_gpus, const Sketch::Turn& turn) {
  std::vector<GpuId> image;
  for (int x = 0; x < static_cast<int>(num_gpus); ++x)
    image.emplace_back((x % turn.group + turn.offset) % turn.group + x / turn.group * turn.group);
  return image;
}

void check_symmetry(const Topology& topology, const Sketch& sketch) {
  if (sketch.symmetry.empty()) return;
  // What joins two GPUs directly or through switches: how many hops, and what the first costs.
  const HopTable table(topology);
  std::map<std::pair<GpuId, GpuId>, std::tuple<int, double, double>> joined;
  for (const Hop& hop : table.hops()) {
    auto& [count, fixed_us, us_per_byte] = joined[{hop.src, hop.dst}];
    if (count++ > 0) continue;
    fixed_us = hop.fixed_us;
    us_per_byte = hop.us_per_byte;
  }
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * (1 + std::abs(a)); };
  for (const Sketch::Turn& turn : sketch.symmetry) {
    const std::vector<GpuId> image = image_of(topology.num_gpus(), turn);
    for (const auto& [pair, way] : joined) {
      if (pair.first.value / turn.group != pair.second.value / turn.group) continue;
      const std::pair images(image[pair.first.index()], image[pair.second.index()]);
      const auto other = joined.find(images);
      const auto& [count, fixed_us, us_per_byte] = way;
      if (other != joined.end() && std::get<0>(other->second) == count &&
          !differ(std::get<1>(other->second), fixed_us) && !differ(std::get<2>(other->second), us_per_byte))
        continue;
      refuse(fmt::format(
          "symmetry_offsets has [{}, {}], which takes GPUs {} and {} to {} and {}, but these are {} in "
          "'{}'; leave the offset out",
          turn.offset, turn.group, pair.first.value, pair.second.value, images.first.value,
          images.second.value, other == joined.end() ? "not joined" : "joined otherwise", topology.name()));
    }
  }
}

void check_for_fabric(const Sketch& sketch) {
  if (sketch.input_bytes)
    refuse(
        "hyperparameters.input_size says for which size the times of a profile are; give --profile, or leave "
        "it out");
  for (std::size_t s = 0; s < sketch.switches.size(); ++s) {
    if (std::ranges::find(sketch.switches.begin(), sketch.switches.begin() + static_cast<std::ptrdiff_t>(s),
                          sketch.switches[s]) == sketch.switches.begin() + static_cast<std::ptrdiff_t>(s))
      continue;
    refuse(fmt::format(
        "intranode_sketch.switches[{}] is listed before: a profile's bandwidth is multiplied so, a "
        "fabric has its own; list it once",
        s));
  }
}

}  // namespace rondo
