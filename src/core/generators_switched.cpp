#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fabric_builder.hpp"
#include "generator_families.hpp"
#include "generator_parameters.hpp"

namespace rondo {
namespace {

const GeneratorParameter kMulticast = {"multicast", "whether switches may copy", "true",
                                       one_of({"true", "false"})};
const GeneratorParameter kReduce = {"reduce",
                                    "whether switches may add, as NVLink SHARP and InfiniBand SHARP do",
                                    "false", one_of({"true", "false"})};

int chassis_number(std::size_t chassis) {
  return static_cast<int>(chassis);
}

/// GPUs named c<chassis>g<gpu>.
std::vector<NodeId> add_chassis(TopologyBuilder& fabric, std::size_t chassis, std::size_t count) {
  std::vector<NodeId> gpus;
  for (std::size_t g = 0; g < count; ++g) {
    gpus.push_back(fabric.gpu(fmt::format("c{}g{}", chassis, g), chassis_number(chassis)));
  }
  return gpus;
}

struct HybridCubeMeshEdge {
  std::size_t a;
  std::size_t b;
  int nvlinks;
};

/// NVLinks between the 8 GPUs of a DGX-1 or NDv2 (SCCL, PPoPP 2021, Figure 1).
constexpr std::array<HybridCubeMeshEdge, 16> kHybridCubeMesh = {{{0, 1, 2},
                                                                 {0, 2, 1},
                                                                 {0, 3, 1},
                                                                 {0, 4, 2},
                                                                 {1, 2, 1},
                                                                 {1, 3, 2},
                                                                 {1, 5, 1},
                                                                 {2, 3, 2},
                                                                 {2, 6, 2},
                                                                 {3, 7, 1},
                                                                 {4, 5, 2},
                                                                 {4, 6, 1},
                                                                 {4, 7, 1},
                                                                 {5, 6, 1},
                                                                 {5, 7, 2},
                                                                 {6, 7, 2}}};

Topology star(const Parameters& parameters) {
  const std::size_t chassis = parameters.count("chassis");
  const std::size_t gpus = parameters.count("gpus");
  const std::string& intra = parameters.text("intra");
  const LinkFigures inside = parameters.link("intra_GBps", "intra_latency_us");
  const LinkFigures uplink = parameters.link("uplink_GBps", "uplink_latency_us", "inter_message_us");
  const std::size_t uplinks = parameters.count("uplinks");
  const SwitchFigures switches = parameters.switches();
  if (intra == "ndv2" && gpus != 8) parameters.refuse("gpus", "8 where intra is ndv2");
  if (uplinks > gpus) parameters.refuse("uplinks", fmt::format("at most gpus ({})", gpus));

  TopologyBuilder fabric(fmt::format("star-{}x{}-{}", chassis, gpus, intra), "generated: star");
  std::vector<std::vector<NodeId>> members;
  for (std::size_t c = 0; c < chassis; ++c) members.push_back(add_chassis(fabric, c, gpus));
  for (std::size_t c = 0; c < chassis; ++c) {
    if (intra == "full") {
      fabric.connect_all(members[c], inside);
    } else if (intra == "ring") {
      // Of two GPUs each is the next one of the other.
      for (std::size_t g = gpus == 2 ? 1 : 0; g < gpus && gpus > 1; ++g)
        fabric.connect(members[c][g], members[c][(g + 1) % gpus], inside);
    } else if (intra == "ndv2") {
      for (const auto& [a, b, nvlinks] : kHybridCubeMesh) {
        fabric.connect(members[c][a], members[c][b],
                       {inside.bandwidth_GBps * nvlinks / 2, inside.latency_us, inside.message_us});
      }
    } else {
      const NodeId sw = fabric.add_switch(fmt::format("c{}sw", c), switches);
      for (const NodeId gpu : members[c]) fabric.connect(gpu, sw, inside);
    }
  }
  const NodeId centre = fabric.add_switch("sw", switches);
  for (std::size_t c = 0; c < chassis; ++c) {
    for (std::size_t g = 0; g < uplinks; ++g) fabric.connect(members[c][g], centre, uplink);
  }
  return std::move(fabric).build();
}

Topology rails(const Parameters& parameters) {
  const std::size_t boxes = parameters.count("boxes");
  const std::size_t gpus = parameters.count("gpus");
  const std::size_t num_rails = parameters.text("rails") == "gpus" ? gpus : parameters.count("rails");
  const LinkFigures nvlink = parameters.link("nvlink_GBps", "nvlink_latency_us");
  const LinkFigures nic = parameters.link("nic_GBps", "nic_latency_us", "inter_message_us");
  const SwitchFigures switches = parameters.switches();
  if (num_rails > gpus) parameters.refuse("rails", fmt::format("at most gpus ({}), or 'gpus'", gpus));

  TopologyBuilder fabric(fmt::format("rails-{}x{}-{}", boxes, gpus, num_rails), "generated: rails");
  std::vector<std::vector<NodeId>> members;
  for (std::size_t b = 0; b < boxes; ++b) members.push_back(add_chassis(fabric, b, gpus));
  for (std::size_t b = 0; b < boxes; ++b) {
    const NodeId nvswitch = fabric.add_switch(fmt::format("c{}nvswitch", b), switches);
    for (const NodeId gpu : members[b]) fabric.connect(gpu, nvswitch, nvlink);
  }
  std::vector<NodeId> rail;
  for (std::size_t r = 0; r < num_rails; ++r)
    rail.push_back(fabric.add_switch(fmt::format("rail{}", r), switches));
  for (std::size_t b = 0; b < boxes; ++b) {
    for (std::size_t g = 0; g < gpus; ++g) fabric.connect(members[b][g], rail[g % num_rails], nic);
  }
  return std::move(fabric).build();
}

Topology fat_tree(const Parameters& parameters) {
  const std::size_t leaves = parameters.count("leaves");
  const std::size_t gpus = parameters.count("gpus");
  const std::size_t spines = parameters.count("spines");
  const LinkFigures down = parameters.link("link_GBps", "link_latency_us");
  const LinkFigures up = parameters.link("uplink_GBps", "uplink_latency_us", "inter_message_us");
  const SwitchFigures switches = parameters.switches();
  if (leaves * gpus < 2) parameters.refuse("gpus", "2 or more under a single leaf");

  TopologyBuilder fabric(fmt::format("fat_tree-{}x{}-{}", leaves, gpus, spines),
                         "generated: two-level fat tree");
  for (std::size_t l = 0; l < leaves; ++l) {
    for (std::size_t g = 0; g < gpus; ++g) fabric.gpu(fmt::format("l{}g{}", l, g));
  }
  std::vector<NodeId> leaf;
  std::vector<NodeId> spine;
  for (std::size_t l = 0; l < leaves; ++l)
    leaf.push_back(fabric.add_switch(fmt::format("leaf{}", l), switches));
  for (std::size_t s = 0; s < spines; ++s)
    spine.push_back(fabric.add_switch(fmt::format("spine{}", s), switches));
  for (std::size_t l = 0; l < leaves; ++l) {
    for (std::size_t g = 0; g < gpus; ++g) fabric.connect(NodeId(l * gpus + g), leaf[l], down);
    for (const NodeId s : spine) fabric.connect(leaf[l], s, up);
  }
  return std::move(fabric).build();
}

/// The global links of a group are dealt to its routers in turn, in the order of the distance between the
/// groups, so that turning the groups around maps the topology onto itself.
Topology dragonfly(const Parameters& parameters) {
  const std::size_t groups = parameters.count("groups");
  const std::size_t routers = parameters.count("routers");
  const std::size_t hosts = parameters.count("hosts");
  const LinkFigures host = parameters.link("host_GBps", "host_latency_us");
  const LinkFigures local = parameters.link("local_GBps", "local_latency_us");
  const LinkFigures global = parameters.link("global_GBps", "global_latency_us", "inter_message_us");
  const SwitchFigures switches = parameters.switches();

  TopologyBuilder fabric(fmt::format("dragonfly-{}x{}x{}", groups, routers, hosts), "generated: dragonfly");
  for (std::size_t i = 0; i < groups * routers * hosts; ++i) {
    fabric.gpu(fmt::format("d{}r{}h{}", i / hosts / routers, i / hosts % routers, i % hosts));
  }
  std::vector<std::vector<NodeId>> router(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t r = 0; r < routers; ++r) {
      router[g].push_back(fabric.add_switch(fmt::format("d{}r{}", g, r), switches));
      for (std::size_t h = 0; h < hosts; ++h) {
        fabric.connect(NodeId((g * routers + r) * hosts + h), router[g][r], host);
      }
    }
    fabric.connect_all(router[g], local);
  }
  const auto router_towards = [&](std::size_t from, std::size_t to) {
    const std::size_t distance = (to + groups - from) % groups;
    return router[from][(distance - 1) % routers];
  };
  for (std::size_t a = 0; a < groups; ++a) {
    for (std::size_t b = a + 1; b < groups; ++b)
      fabric.connect(router_towards(a, b), router_towards(b, a), global);
  }
  return std::move(fabric).build();
}

}  // namespace

TopologyGenerator star_family() {
  return {
      "star",
      "chassis of GPUs around one switch",
      {{"chassis", "number of chassis", "2", whole_number(2)},
       {"gpus", "GPUs a chassis", "8", whole_number(1)},
       {"intra",
        "inside a chassis: full (every GPU with every other), ndv2 (the hybrid cube mesh of 8 GPUs; double "
        "links have "
        "intra_GBps, single ones half of it), ring (both ways) or switch",
        "full", one_of({"full", "ring", "ndv2", "switch"})},
       {"intra_GBps", "bandwidth of a link inside a chassis, GB/s", "50", positive()},
       {"intra_latency_us", "latency of a link inside a chassis, us", "0.7", not_negative()},
       {"uplinks", "GPUs of each chassis that have links to and from the central switch, the first ones", "1",
        whole_number(1)},
       {"uplink_GBps", "bandwidth of such a link, GB/s", "12.5", positive()},
       {"uplink_latency_us", "latency of such a link, us", "1.3", not_negative()},
       message_cost("a link inside a chassis"),
       inter_message_cost("a link to or from the central switch"),
       kMulticast,
       kReduce},
      star};
}

TopologyGenerator rails_family() {
  return {"rails",
          "boxes as in DGX A100 or H100: an NVSwitch a box, a NIC a GPU, a switch a rail",
          {{"boxes", "number of boxes", "2", whole_number(2)},
           {"gpus", "GPUs a box, each with a NIC", "8", whole_number(1)},
           {"rails",
            "rail switches; the NIC of GPU g of every box is on rail g mod rails; 'gpus' for one a GPU",
            "gpus",
            {.least = 1, .is_whole = true, .words = {"gpus"}}},
           {"nvlink_GBps", "bandwidth between a GPU and the NVSwitch of its box, GB/s", "300", positive()},
           {"nvlink_latency_us", "latency of it, us", "0.5", not_negative()},
           {"nic_GBps", "bandwidth between a GPU and its rail switch, GB/s", "25", positive()},
           {"nic_latency_us", "latency of it, us", "1.5", not_negative()},
           message_cost("a link between a GPU and its NVSwitch"),
           inter_message_cost("a link between a GPU and its rail switch"),
           kMulticast,
           kReduce},
          rails};
}

TopologyGenerator fat_tree_family() {
  return {"fat_tree",
          "two levels of switches: GPUs under leaves, every leaf linked with every spine",
          {{"leaves", "number of leaf switches", "4", whole_number(1)},
           {"gpus", "GPUs a leaf", "4", whole_number(1)},
           {"spines", "number of spine switches, each linked with every leaf", "4", whole_number(1)},
           {"link_GBps", "bandwidth between a GPU and its leaf, GB/s", "25", positive()},
           {"link_latency_us", "latency of it, us", "0.5", not_negative()},
           {"uplink_GBps", "bandwidth between a leaf and a spine, GB/s", "25", positive()},
           {"uplink_latency_us", "latency of it, us", "0.5", not_negative()},
           message_cost("a link between a GPU and its leaf"),
           inter_message_cost("a link between a leaf and a spine"),
           kMulticast,
           kReduce},
          fat_tree};
}

TopologyGenerator dragonfly_family() {
  return {"dragonfly",
          "groups of routers, fully connected inside, one global link between each two groups",
          {{"groups", "number of groups; one global link (each way) joins each two", "9", whole_number(2)},
           {"routers", "routers a group, each linked with every other of the group", "4", whole_number(1)},
           {"hosts", "GPUs a router", "2", whole_number(1)},
           {"host_GBps", "bandwidth between a GPU and its router, GB/s", "25", positive()},
           {"host_latency_us", "latency of it, us", "0.5", not_negative()},
           {"local_GBps", "bandwidth between two routers of a group, GB/s", "25", positive()},
           {"local_latency_us", "latency of it, us", "0.5", not_negative()},
           {"global_GBps", "bandwidth between two groups, GB/s", "25", positive()},
           {"global_latency_us", "latency of it, us", "1", not_negative()},
           message_cost("a link inside a group"),
           inter_message_cost("a link between two groups"),
           kMulticast,
           kReduce},
          dragonfly};
}

}  // namespace rondo
