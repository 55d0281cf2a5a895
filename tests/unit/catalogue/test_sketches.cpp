#include <gtest/gtest.h>

#include <filesystem>

#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/sketch_candidates.hpp"

namespace rondo::catalogue::test_sketches {
namespace {

namespace fs = std::filesystem;

constexpr int kGpus = 4;  // of a node
constexpr int kNics = 2;

/// Two nodes of four GPUs, all joined; GPUs 0 and 1 share a NIC, 2 and 3 another one; a network for each NIC.
Topology two_nodes() {
  TopologyData data{.name = "two-nodes"};
  const auto add = [&](NodeKind kind, std::optional<int> chassis) {
    data.nodes.push_back({.kind = kind, .chassis = chassis, .multicast = false});
    return NodeId(data.nodes.size() - 1);
  };
  const auto join = [&](NodeId a, NodeId b, double GBps, double us) {
    for (const auto& [src, dst] : {std::pair(a, b), std::pair(b, a)})
      data.links.push_back({src, dst, GBps, us});
  };
  for (int node = 0; node < 2; ++node) {
    for (int i = 0; i < kGpus; ++i) add(NodeKind::gpu, node);
  }
  std::vector<NodeId> networks;
  for (int n = 0; n < kNics; ++n) networks.push_back(add(NodeKind::switch_, std::nullopt));
  for (int node = 0; node < 2; ++node) {
    for (int a = 0; a < kGpus; ++a) {
      for (int b = a + 1; b < kGpus; ++b) join(NodeId(node * kGpus + a), NodeId(node * kGpus + b), 40, 0.6);
    }
    for (int n = 0; n < kNics; ++n) {
      const NodeId nic = add(NodeKind::switch_, node);
      join(nic, networks[static_cast<std::size_t>(n)], 12, 0.85);
      for (int i = 2 * n; i < 2 * n + 2; ++i) join(NodeId(node * kGpus + i), nic, 12, 0.5);
    }
  }
  return Topology(std::move(data));
}

TEST(SketchCandidates, AreMadeOfNicsAndGroups) {
  std::map<std::string, std::map<int, std::vector<int>>> found;
  for (const SketchCandidate& candidate : sketch_candidates(two_nodes())) {
    EXPECT_EQ(candidate.sketch.nodes, 2);
    found[candidate.name] = *candidate.sketch.conn;
  }
  const std::map<std::string, std::map<int, std::vector<int>>> expected{
      {"1 NIC, own group", {{0, {0}}}},
      {"1 NIC, one sends, one receives", {{0, {1}}}},
      {"2 NICs, own group", {{0, {0}}, {2, {2}}}},
      {"all GPUs, own group", {{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}}}};
  EXPECT_EQ(found, expected);  // no way leads from a NIC's network to the other one's
  TopologyData data{.nodes = {Node{}, Node{}}, .links = {{NodeId(0), NodeId(1), 10, 1}}};
  EXPECT_TRUE(sketch_candidates(Topology(std::move(data))).empty());  // of no node
}

// Where all GPUs send to their likes alone, a search with little work finds what it misses on all links.
TEST(CatalogueSketches, AreTriedAndTheBestIsCarriedBackOntoTheWholeFabric) {
  std::string pattern = (fs::temp_directory_path() / "rondo-sketches-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  const auto alone = make_local_communicator();
  const auto topology = std::make_shared<const Topology>(two_nodes());
  BuildTask task{
      .topology = topology, .series = {{fingerprint(*topology), Collective::broadcast}}, .sizes = {8192}};
  task.options.solve.improve_work = 1e3;
  const auto cell_in = [&](const std::string& name) {
    const Folder folder = Folder::open_or_make(root / name);
    folder.add_fabric(*topology);
    build(folder, task, {*alone});
    EXPECT_EQ(verify(folder, {*alone}).faults, std::vector<std::string>());
    return folder.table(task.series.front()).cells.front();
  };
  const Cell without = cell_in("without");
  EXPECT_EQ(without.sketch, "");
  task.options.sketches = 4;
  const Cell with = cell_in("with");
  EXPECT_EQ(with.sketch, "all GPUs, own group: 0>0 1>1 2>2 3>3");
  EXPECT_EQ(with.way, Way::solved);
  EXPECT_LT(with.finish_us, 0.99 * without.finish_us);
  EXPECT_EQ(with.bound->us, without.bound->us);  // of the whole fabric
  const Folder folder = Folder::open(root / "with");
  EXPECT_EQ(fingerprint(folder.schedule(with.schedule)->topology), fingerprint(*topology));
  EXPECT_EQ(build(folder, task, {*alone}).found, 1);
  fs::remove_all(root);
}

}  // namespace
}  // namespace rondo::catalogue::test_sketches
