#include "rondo/io/sketch_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "expect_error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::sketch_files_test {
namespace {

Json shipped(const std::string& name) {
  const std::string path = std::string(RONDO_SOURCE_DIR) + "/jobs/" + name;
  return parse_json(read_text_file(path), path);
}

Topology profiled(const std::string& profile, int nodes, const Sketch* sketch = nullptr) {
  return topology_of(profile_from_json(shipped("profiles/" + profile)),
                     {.nodes = nodes, .chunk_bytes = 1e6, .sketch = sketch});
}

/// GPUs that a GPU sends to without others between.
std::set<int> peers_of(const Topology& topology, int gpu) {
  std::set<int> peers;
  for (const Hop& hop : hops_from(topology, GpuId(gpu))) peers.insert(hop.dst.value);
  return peers;
}

TEST(Profiles, AnNdv2IsWiredAsADgx1) {
  const Topology node = profiled("ndv2.json", 1);
  EXPECT_EQ(node.num_gpus(), 8U);
  EXPECT_EQ(node.num_links(), 32U);
  EXPECT_EQ(peers_of(node, 0), (std::set<int>{1, 2, 3, 4}));
  for (const Link& link : node.links()) EXPECT_EQ(link.message_us, 0.7);
  // 1 MB in 23 us, in 46 over a single link.
  const auto to_1 =
      std::ranges::find_if(node.links(), [](const Link& l) { return l.src.value == 0 && l.dst.value == 1; });
  EXPECT_NEAR(to_1->bandwidth_GBps, 1e3 / 23, 1e-9);
  const auto to_2 =
      std::ranges::find_if(node.links(), [](const Link& l) { return l.src.value == 0 && l.dst.value == 2; });
  EXPECT_NEAR(to_2->bandwidth_GBps, 1e3 / 46, 1e-9);
}

TEST(Profiles, NicsAreSharedAndLeadToOtherNodesAlone) {
  const Topology two = profiled("ndv2.json", 2);
  EXPECT_EQ(two.num_gpus(), 16U);
  std::set<int> expected{1, 2, 3, 4};
  for (int g = 8; g < 16; ++g) expected.insert(g);
  EXPECT_EQ(peers_of(two, 0), expected);
  // All that leaves a node goes over one link.
  for (int n = 0; n < 2; ++n) {
    const std::string nic = "c" + std::to_string(n) + "nic0.out";
    const auto at = std::ranges::find(two.nodes(), nic, &Node::name);
    ASSERT_NE(at, two.nodes().end());
    EXPECT_EQ(two.out_links(NodeId(static_cast<std::size_t>(at - two.nodes().begin()))).size(), 1U);
  }
  const Topology three = profiled("dgx2.json", 3);
  EXPECT_EQ(three.num_gpus(), 48U);
  EXPECT_EQ(peers_of(three, 0).size(), 47U);
}

TEST(Profiles, MatricesAreByDestinationAndSource) {
  Json json = {{"name", "line"},
               {"gpus_per_node", 2},
               {"alpha", 1},
               {"links", {{0, 0}, {2, 0}}},
               {"betas", {{0, 0}, {5, 0}}}};
  const Topology node = topology_of(profile_from_json(json), {.chunk_bytes = 1e6, .unit_us = 2});
  ASSERT_EQ(node.num_links(), 2U);  // two of them, from GPU 0 to GPU 1
  EXPECT_EQ(node.links()[0].src, NodeId{0});
  EXPECT_NEAR(node.links()[0].bandwidth_GBps, 100, 1e-9);
  EXPECT_EQ(node.links()[0].message_us, 2);
  const auto refused = [&](const std::vector<std::string>& parts, const std::function<void(Json&)>& damage) {
    Json bad = json;
    damage(bad);
    expect_error(ExitCode::bad_data, parts, [&] { profile_from_json(bad); });
  };
  refused({"links has 1 rows", "gpus_per_node is 2"}, [](Json& j) { j["links"] = {{0, 0}}; });
  refused({"row 1 has 3 numbers"}, [](Json& j) { j["betas"] = {{0, 0}, {1, 2, 3}}; });
  refused({"betas[1][0] is 0"}, [](Json& j) { j["betas"] = {{0, 0}, {0, 0}}; });
  refused({"links[0][0] is 1", "diagonal"}, [](Json& j) { j["links"] = {{1, 0}, {2, 0}}; });
  refused({"one of the two"}, [](Json& j) { j["node_betas_list"] = {1}; });
  refused({"alpha is -1"}, [](Json& j) { j["alpha"] = -1; });
  refused({"nics_per_node is 3"}, [](Json& j) {
    j["nics_per_node"] = 3;
    j["remote_alpha"] = j["remote_beta"] = 1;
  });
  refused({"remote_alpha"}, [](Json& j) { j["nics_per_node"] = 1; });
  refused({"speed"}, [](Json& j) { j["speed"] = 1; });
  const Json three = {{"name", "x"}, {"gpus_per_node", 8}, {"alpha", 1}, {"node_betas_list", {1, 2, 3}}};
  expect_error(ExitCode::bad_data, {"node_betas_list has 3"}, [&] { profile_from_json(three); });
  expect_error(ExitCode::bad_data, {"no nics_per_node"},
               [&] { topology_of(profile_from_json(json), {.nodes = 2}); });
}

TEST(Sketches, OneSenderAndOneReceiver) {
  const Sketch sketch = sketch_from_json(shipped("sketches/ndv2-sk-1.json"), 16);
  const Topology left = restricted(profiled("ndv2.json", 2), sketch);
  for (int g = 0; g < 16; ++g) {
    std::set<int> away = peers_of(left, g);
    std::erase_if(away, [&](int p) { return p / 8 == g / 8; });
    EXPECT_EQ(away, g % 8 == 0 ? std::set<int>{(g + 8) % 16 + 1} : std::set<int>{}) << g;
  }
  check_symmetry(left, sketch);
  // On a fabric with direct links between its chassis as well.
  const Topology shipped_left = restricted(load_topology("ndv2-2"), sketch);
  EXPECT_EQ(shipped_left.num_links(), 66U);
}

TEST(Sketches, PairsOfSendersAndReceiversKeepToThemselves) {
  const Sketch first = sketch_from_json(shipped("sketches/dgx2-sk-1.json"), 32);
  EXPECT_EQ(first.relays.at(3), (std::vector<int>{2, 3}));
  const Topology left = restricted(profiled("dgx2.json", 2), first);
  for (int g = 0; g < 32; ++g) {
    const std::set<int> peers = peers_of(left, g);
    EXPECT_EQ(peers.size(), g % 2 == 1 ? 16U : 15U) << g;
    EXPECT_EQ(peers.contains((g + 16) % 32 - 1) && g % 2 == 1, g % 2 == 1) << g;
  }
  EXPECT_TRUE(left.shared_bandwidth().empty());
  check_symmetry(left, first);
  // Where two of a pair send, what they share of their NIC has its bandwidth once.
  const Sketch second = sketch_from_json(shipped("sketches/dgx2-sk-2.json"), 32);
  const Topology direct = restricted(profiled("dgx2.json", 2), second);
  for (int g = 0; g < 32; ++g) EXPECT_TRUE(peers_of(direct, g).contains((g + 16) % 32)) << g;
  EXPECT_FALSE(direct.shared_bandwidth().empty());
  for (const SharedBandwidth& group : direct.shared_bandwidth())
    EXPECT_NEAR(group.bandwidth_GBps, 1e3 / 106, 1e-9);
}

TEST(Sketches, WhatASwitchIsListedTwiceForIsTwiceAsFast) {
  Json json = shipped("sketches/dgx2-sk-2.json");
  Json& local = json["intranode_sketch"];
  local["switches"].push_back(local["switches"][0]);
  local["switch_hyperedge_strategy"].push_back("free");
  const Sketch sketch = sketch_from_json(json, 32);
  const Topology twice = profiled("dgx2.json", 2, &sketch);
  EXPECT_NEAR(twice.links().front().bandwidth_GBps, 2 * 1e3 / 8, 1e-9);
  expect_error(ExitCode::bad_data, {"switches[1]", "listed before"}, [&] { check_for_fabric(sketch); });
}

TEST(Sketches, ContradictionsAreNamed) {
  const auto refused = [](const std::vector<std::string>& parts, const std::function<void(Json&)>& damage) {
    Json json = shipped("sketches/dgx2-sk-1.json");
    damage(json);
    expect_error(ExitCode::bad_data, parts, [&] {
      const Sketch sketch = sketch_from_json(json, 32);
      check_symmetry(restricted(profiled("dgx2.json", 2), sketch), sketch);
    });
  };
  const auto local = [](Json& j) -> Json& { return j["intranode_sketch"]; };
  const auto network = [](Json& j) -> Json& { return j["internode_sketch"]; };
  refused({"unknown key", "colour"}, [](Json& j) { j["colour"] = 1; });
  refused({"nnodes is 3", "32 GPUs"}, [](Json& j) { j["nnodes"] = 3; });
  refused({"internode_sketch", "nnodes is 1"}, [](Json& j) { j["nnodes"] = 1; });
  refused({"internode_sketch is missing"}, [](Json& j) { j.erase("internode_sketch"); });
  refused({"intranode_sketch", "'swich'", "did you mean 'switch'"},
          [&](Json& j) { local(j)["strategy"] = "swich"; });
  refused({"switches need strategy switch"}, [&](Json& j) { local(j)["strategy"] = "none"; });
  refused({"uc-mid", "uc-min"}, [&](Json& j) { local(j)["switch_hyperedge_strategy"] = {"uc-mid"}; });
  refused({"2 entries for 1 switches"}, [&](Json& j) {
    local(j)["switch_hyperedge_strategy"] = {"uc-min", "free"};
  });
  refused({"switches[0]", "each once"}, [&](Json& j) { local(j)["switches"][0] = {0, 0}; });
  refused({"switches[1]", "some GPUs of switches[0]"}, [&](Json& j) {
    local(j)["switches"].push_back({0, 1});
    local(j)["switch_hyperedge_strategy"].push_back("free");
  });
  refused({"internode_sketch", "'relais'"}, [&](Json& j) { network(j)["strategy"] = "relais"; });
  refused({"internode_conn", "'all'", "fully-connected"},
          [&](Json& j) { network(j)["internode_conn"] = "all"; });
  refused({"internode_conn", "'16'"}, [&](Json& j) { network(j)["internode_conn"]["16"] = {0}; });
  refused({"internode_conn.1", "16"}, [&](Json& j) { network(j)["internode_conn"]["1"] = {16}; });
  refused({"chunk_to_relay_map is [3, 1]"}, [&](Json& j) { network(j)["chunk_to_relay_map"] = {3, 1}; });
  refused({"chunk_to_relay_map names GPU 0"}, [&](Json& j) { network(j)["chunk_to_relay_map"] = {2, 0}; });
  refused({"other senders"}, [&](Json& j) { network(j)["gpus_to_sender_rev_map"] = {{"1", {0, 1}}}; });
  refused({"names no sender for what GPU 2 has"}, [&](Json& j) {
    network(j).erase("chunk_to_relay_map");
    network(j)["gpus_to_sender_rev_map"] = {{"1", {0, 1}}};
  });
  refused({"enforce_ordering needs"}, [&](Json& j) { network(j).erase("chunk_to_relay_map"); });
  refused({"beta_split of GPU 1 is 0"}, [&](Json& j) { network(j)["beta_split"] = {{"1", 0}}; });
  refused({"beta_split names GPU 0"}, [&](Json& j) { network(j)["beta_split"] = {{"0", 1}}; });
  refused({"symmetry_offsets[0]", "[2, 15]"}, [](Json& j) { j["symmetry_offsets"] = {{2, 15}}; });
  // GPU 1 sends and GPU 0 does not.
  refused({"symmetry_offsets has [1, 32]", "leave the offset out"}, [](Json& j) {
    j["symmetry_offsets"] = {{1, 32}};
  });
  refused({"input_chunkup"}, [](Json& j) { j["hyperparameters"]["input_chunkup"] = 0; });
  // No chassis, and a link that is not there.
  const Sketch two = sketch_from_json(shipped("sketches/ndv2-sk-1.json"), 8 * 2);
  expect_error(ExitCode::bad_data, {"nnodes is 2", "1 chassis"},
               [&] { restricted(load_topology("torus:dims=4x4"), two); });
  Json across = shipped("sketches/ndv2-sk-1.json");
  across["internode_sketch"]["internode_conn"] = {{"3", {1}}};
  expect_error(ExitCode::bad_data, {"internode_conn", "GPU 3", "no link or switch leads"},
               [&] { restricted(load_topology("ndv2-2"), sketch_from_json(across, 16)); });
  Json joined = shipped("sketches/ndv2-sk-1.json");
  joined["intranode_sketch"] = {
      {"strategy", "switch"}, {"switches", {{0, 5}}}, {"switch_hyperedge_strategy", {"free"}}};
  expect_error(ExitCode::bad_data, {"switches[0]", "GPUs 0 and 5"},
               [&] { restricted(load_topology("ndv2-2"), sketch_from_json(joined, 16)); });
}

TEST(Sketches, ASenderTakesAPartOfItsLinks) {
  Json json = shipped("sketches/ndv2-sk-1.json");
  json["internode_sketch"]["beta_split"] = {{"0", 4}};
  const Topology left = restricted(profiled("ndv2.json", 2), sketch_from_json(json, 16));
  double slowest = 1e9;
  for (const Link& link : left.links()) slowest = std::min(slowest, link.bandwidth_GBps);
  EXPECT_NEAR(slowest, 1e3 / 106 / 4, 1e-9);
}

}  // namespace
}  // namespace rondo::sketch_files_test
