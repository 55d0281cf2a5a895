#include "rondo/io/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "expect_error.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::machine_test {
namespace {

/// Two V100 with a NIC behind one PCIe switch; `from` is replaced by `to`.
std::string two_gpus(const std::string& from = "", const std::string& to = "") {
  std::string text = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="70" rank="1"><nvlink target="0000:03:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="70" rank="0"><nvlink target="0000:02:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="100000" port="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
)";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

NodeId node_named(const Topology& topology, const std::string& name) {
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.nodes()[n].name == name) return NodeId{n};
  }
  ADD_FAILURE() << name << " is not there";
  return NodeId{};
}

/// GB/s from one node to another; 0 where no link joins them.
double GBps(const Topology& topology, const std::string& from, const std::string& to) {
  double sum = 0;
  for (const LinkId l : topology.out_links(node_named(topology, from))) {
    if (topology.link(l).dst == node_named(topology, to)) sum += topology.link(l).bandwidth_GBps;
  }
  return sum;
}

double out_GBps(const Topology& topology, NodeId node) {
  double sum = 0;
  for (const LinkId l : topology.out_links(node)) sum += topology.link(l).bandwidth_GBps;
  return sum;
}

void expect_reachable(const Topology& topology) {
  check_reachable(topology, make_demand(Collective::alltoall, 1, topology.num_gpus(), 1));
}

TEST(NcclXml, GpusAreNumberedByRankAndNvLinksCount) {
  const Topology topology = topology_of(parse_machine(two_gpus(), "two.xml"));
  EXPECT_EQ(topology.name(), "two");
  ASSERT_EQ(topology.num_nodes(), 2U);  // NVLink joins them: no PCIe, and no network for the NIC
  EXPECT_EQ(topology.num_links(), 2U);
  EXPECT_EQ(GBps(topology, "c0g0", "c0g1"), 40);
  // Rank 0 is the second of the file.
  const Machine machine = parse_machine(two_gpus(), "two.xml");
  EXPECT_GT(machine.gpus[0], machine.gpus[1]);
}

TEST(NcclXml, WhatGpusShareOnTheWayToANicIsShared) {
  const Topology topology = compose(parse_machine(two_gpus(), "two.xml"), 2, "rails");
  EXPECT_EQ(topology.num_gpus(), 4U);
  EXPECT_EQ(GBps(topology, "c1g0", "c1nic0.out"), 12);
  EXPECT_EQ(GBps(topology, "c1nic0.in", "c1g1"), 12);
  EXPECT_EQ(GBps(topology, "c1nic0.out", "rail0"), 12.5);
  EXPECT_EQ(GBps(topology, "rail0", "c0nic0.in"), 12.5);
  // From the PCIe switch to the NIC both GPUs go over 16 lanes, and back.
  ASSERT_EQ(topology.shared_bandwidth().size(), 4U);
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    EXPECT_EQ(group.links.size(), 2U);
    EXPECT_EQ(group.bandwidth_GBps, 12);
  }
  EXPECT_EQ(topology.shared_bandwidth()[0].name, "c0pci 0000:01:00.0 to c0nic0");
  EXPECT_EQ(topology.node(topology.node_of(GpuId{2})).chassis, 1);
  expect_reachable(topology);
}

TEST(NcclXml, WithoutNvLinkPcieIsThere) {
  const std::string first = R"(<nvlink target="0000:03:00.0" count="2" tclass="0x030200"/>)";
  std::string text = two_gpus(first, "");
  text.replace(text.find(R"(<nvlink target="0000:02)"), first.size(), "");
  const Topology topology = topology_of(parse_machine(text, "two.xml"));
  ASSERT_EQ(topology.num_nodes(), 3U);  // the CPU leads nowhere
  EXPECT_EQ(GBps(topology, "c0g0", "c0pci 0000:01:00.0"), 12);
  expect_reachable(topology);
  const Topology joined = compose(parse_machine(text, "two.xml"), 2, "leaf_spine:nodes_per_leaf=1,spines=1");
  EXPECT_EQ(GBps(joined, "c0pci 0000:01:00.0", "c0nic0"), 12);
  EXPECT_EQ(GBps(joined, "c0nic0", "leaf0"), 12.5);
  EXPECT_EQ(GBps(joined, "leaf1", "spine0"), 12.5);
  expect_reachable(joined);
}

TEST(NcclXml, FiguresThatMeanUnknownAreNotTaken) {
  // A virtual bridge: its devices hang on the CPU, each with its own figures.
  const std::string bridge = R"(class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16")";
  for (const char* unknown : {R"(class="0x060400" link_speed="2.5 GT/s PCIe" link_width="16")",
                              R"(class="0x060400" link_speed="8.0 GT/s PCIe" link_width="0")",
                              R"(class="0x060400" link_speed="" link_width="16")", R"(class="0x060400")"}) {
    const Topology topology = compose(parse_machine(two_gpus(bridge, unknown), "vm.xml"), 2, "rails");
    EXPECT_EQ(GBps(topology, "c0g0", "c0nic0.out"), 12) << unknown;
    ASSERT_EQ(topology.shared_bandwidth().size(), 4U);
    EXPECT_EQ(topology.shared_bandwidth()[0].name, "c0cpu0 to c0nic0");
  }
  // A GPU has the PCIe of its generation; a NIC is as fast as its nets.
  const std::string gpu = R"(class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16")";
  EXPECT_EQ(
      GBps(compose(parse_machine(two_gpus(gpu, R"(class="0x030200" link_speed="2.5 GT/s" link_width="1")"),
                                 "vm.xml"),
                   2, "rails"),
           "c0g1", "c0nic0.out"),
      12);
  const std::string nic = R"(class="0x020700" link_speed="8.0 GT/s PCIe" link_width="16")";
  EXPECT_EQ(
      GBps(compose(parse_machine(two_gpus(nic, R"(class="0x020700" link_width="0")"), "vm.xml"), 2, "rails"),
           "c0nic0.out", "rail0"),
      12.5);
}

TEST(NcclXml, IsRefusedWithTheLine) {
  const auto refused = [](const std::string& from, const std::string& to,
                          std::initializer_list<std::string> words) {
    expect_error(ExitCode::bad_data, words, [&] { parse_machine(two_gpus(from, to), "two.xml"); });
  };
  refused("<gpu dev=\"1\" sm=\"70\" rank=\"0\">", "<gpu dev=\"1\" sm=\"75\" rank=\"0\">",
          {"two.xml line 8", "sm is '75'", "70"});
  refused("0000:03:00.0\" class", "0000:02:00.0\" class", {"two.xml line 8", "bus id 0000:02:00.0"});
  refused("rank=\"0\"", "rank=\"1\"", {"rank 1 is given twice"});
  refused("<net name=\"mlx5_0\" dev=\"0\" speed=\"100000\" port=\"1\"/>", "", {"two.xml line 11", "no net"});
  refused("count=\"2\"", "count=\"0\"", {"line 5", "count is '0'"});
  refused("count=\"2\"", "count=\"x\"", {"line 5", "count", "'x'"});
  refused("tclass=\"0x030200\"", "tclass=\"0x55\"", {"line 5", "tclass is '0x55'"});
  refused("</system>", "", {"no XML"});
  refused("<system", "<sistem", {"no XML"});
  expect_error(ExitCode::bad_data, {"line 1", "no GPU"}, [] { parse_machine("<system/>", "two.xml"); });
  expect_error(ExitCode::bad_data, {"'system'"}, [] { parse_machine("<graphs/>", "two.xml"); });
  expect_error(ExitCode::bad_data, {"one GPU"}, [] {
    parse_machine(R"(<system><cpu><pci busid="1"><gpu dev="0" sm="90"/></pci></cpu></system>)", "one.xml");
  });
  expect_error(ExitCode::bad_data, {"two.xml line 11", "speed"}, [] {
    compose(parse_machine(two_gpus("speed=\"100000\"", "speed=\"-1\""), "two.xml"), 2, "rails");
  });
}

TEST(Compose, RefusesNetworksThatTheMachinesDoNotFit) {
  const Machine machine = parse_machine(two_gpus(), "two.xml");
  const auto refused = [&](int nodes, const std::string& network, std::initializer_list<std::string> words) {
    expect_error(ExitCode::usage, words, [&] { compose(machine, nodes, network); });
  };
  refused(2, "railes", {"railes", "did you mean 'rails'", "leaf_spine"});
  refused(0, "rails", {"--nodes", "0"});
  refused(3, "rails:ports=2", {"rail 0", "3 ports", "have 2"});
  refused(6, "leaf_spine:nodes_per_leaf=4", {"6 nodes", "leaves of 4"});
  refused(4, "leaf_spine:nodes_per_leaf=2,spines=3,ports=4", {"a leaf", "5 ports"});
  refused(4, "fat_tree:spines=0", {"spines", "'0'"});
  refused(4, "fat_tree:spines=1.5", {"spines", "1.5"});
  refused(4, "fat_tree:spine=2", {"'spine=2'", "did you mean 'spines'"});
  refused(4, "fat_tree:oversubscription=0", {"oversubscription", "'0'"});
  expect_error(ExitCode::bad_data, {"no NIC"}, [] {
    compose(parse_machine(R"(<system><cpu><pci busid="1"><gpu dev="0" sm="90"/></pci><pci busid="2">
<gpu dev="1" sm="90"/></pci></cpu></system>)",
                          "bare.xml"),
            2, "rails");
  });
}

TEST(Compose, OversubscriptionNarrowsTheSpines) {
  const Topology topology =
      compose(load_machine("dgx-h100"), 4, "fat_tree:nodes_per_leaf=2,spines=4,oversubscription=2");
  expect_reachable(topology);
  EXPECT_EQ(GBps(topology, "c3nic7.out", "pod1rail7"), 50);
  EXPECT_EQ(GBps(topology, "pod1rail7", "spine3"), 2 * 50.0 / 4 / 2);
}

/// Published line rates one way, of which NCCL counts about four fifths (FORMATS.md 6).
TEST(ShippedMachines, HaveTheLinksThatArePublished) {
  const std::map<std::string, std::pair<std::size_t, double>> expected{
      {"dgx1v", {8, 6 * 25.0 * 0.8}},            // six NVLinks of 25 GB/s
      {"dgx-h100", {8, 18 * 25.0 * 0.824}},      // 450 GB/s
      {"gb200-nvl72", {72, 18 * 50.0 * 0.802}},  // 900 GB/s
      {"mi300x", {8, 7 * 64.0 * 0.75}}};         // seven links of 64 GB/s
  ASSERT_EQ(shipped_machines().size(), expected.size());
  for (const auto& [name, figures] : expected) {
    SCOPED_TRACE(name);
    const Topology topology = load_topology(name);
    EXPECT_EQ(topology.num_gpus(), figures.first);
    expect_reachable(topology);
    const Topology two = compose(load_machine(name), 2, "rails");
    EXPECT_EQ(two.num_gpus(), 2 * figures.first);
    expect_reachable(two);
    for (std::size_t g = 0; g < topology.num_gpus(); ++g)
      EXPECT_NEAR(out_GBps(topology, topology.node_of(GpuId{g})), figures.second, 1e-6) << g;
    // A rail joins the NICs of all hosts.
    EXPECT_GT(out_GBps(two, node_named(two, "rail0")), 2 * 12.0);
  }
  // Two V100 share a NIC; an H100 has its own.
  EXPECT_EQ(compose(load_machine("dgx1v"), 2, "rails").shared_bandwidth().size(), 2U * 4 * 2);
  EXPECT_TRUE(compose(load_machine("dgx-h100"), 2, "rails").shared_bandwidth().empty());
  EXPECT_EQ(compose(load_machine("gb200-nvl72"), 2, "rails").num_nodes(), 2U * (72 + 1 + 72 * 2) + 4);
}

const std::string kNames =
    "GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-1)\nGPU 1: Tesla V100-SXM2-16GB (UUID: GPU-2)\n"
    "GPU 2: Tesla V100-SXM2-16GB (UUID: GPU-3)\n";
const std::string kMatrix =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV2\tSYS\tPIX\t0-7\t0\n"
    "GPU1\tNV2\t X \tSYS\tPIX\t0-7\t0\n"
    "GPU2\tSYS\tSYS\t X \tNODE\t8-15\t1\n"
    "NIC0\tPIX\tPIX\tNODE\t X \n\nLegend:\n\n  X    = Self\n  SYS  = over the SMP interconnect\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(NvidiaSmi, BusesAndNvLinks) {
  const Topology topology = topology_of(parse_machine(kNames + kMatrix, "node.txt"));
  EXPECT_EQ(topology.name(), "node");
  EXPECT_EQ(topology.num_gpus(), 3U);
  EXPECT_EQ(GBps(topology, "c0g0", "c0g1"), 40);
  expect_reachable(topology);  // the third over PCIe
  const Topology near = topology_of(parse_machine(
      kNames + replaced(replaced(kMatrix, "GPU0\t X \tNV2", "GPU0\t X \tPIX"), "GPU1\tNV2", "GPU1\tPIX"),
      "node.txt"));
  EXPECT_EQ(GBps(near, "c0g0", "c0pci0"), 12);
  EXPECT_EQ(GBps(near, "c0g1", "c0pci0"), 12);
  expect_reachable(near);
}

TEST(NvidiaSmi, MoreLinksThanAGpuHasGoToASwitch) {
  std::string text;
  std::string matrix = "GPU0 GPU1 GPU2 CPU Affinity\n";
  for (int g = 0; g < 3; ++g) text += "GPU " + std::to_string(g) + ": NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n";
  for (int g = 0; g < 3; ++g) {
    matrix += "GPU" + std::to_string(g);
    for (int c = 0; c < 3; ++c) matrix += g == c ? " X" : " NV18";
    matrix += "\n";
  }
  const Topology topology = topology_of(parse_machine(text + matrix, "h100.txt"));
  EXPECT_EQ(topology.num_nodes(), 4U);
  EXPECT_NEAR(GBps(topology, "c0g1", "c0nvswitch"), 18 * 20.6, 1e-9);
}

TEST(NvidiaSmi, IsRefusedWithTheLine) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string> words) {
    expect_error(ExitCode::bad_data, words, [&] { parse_machine(text, "node.txt"); });
  };
  refused(kMatrix, {"which GPUs", "nvidia-smi -L; nvidia-smi topo -m"});
  refused(kNames, {"no matrix"});
  refused("", {"no matrix"});
  const std::string all = kNames + kMatrix;
  refused(all.substr(0, all.find("GPU2\tSYS")), {"2 of 3 rows", "cut off"});
  refused(all.substr(0, all.find("GPU2\tSYS") + 8),
          {"node.txt line 7", "GPU2 has 1 of 3 columns", "cut off"});
  refused(replaced(all, "GPU1\tNV2", "GPU1\tNV3"), {"line 6", "GPU1 to GPU0"});
  refused(replaced(all, "GPU0\t X \tNV2", "GPU0\t X \tNV7"), {"GPU1 to GPU0"});
  refused(replaced(all, "GPU0\t X \tNV2\tSYS", "GPU0\t X \tNV2\tFAR"), {"line 5", "'FAR'", "PIX"});
  refused(replaced(all, "GPU1\tNV2\t X", "GPU1\tNV2\tPIX"), {"line 6", "X"});
  refused(kNames + "  MIG 1g.10gb Device 0: (UUID: MIG-1)\n" + kMatrix, {"line 4", "MIG"});
  refused(replaced(all, "Tesla V100", "Voodoo 2"), {"line 1", "Voodoo 2"});
  refused(replaced(all, "Tesla V100", "NVIDIA H100"), {"GPUs differ"});
  refused(kNames + kNames + kMatrix, {"names 6 GPUs", "has 3"});
}

}  // namespace
}  // namespace rondo::machine_test
