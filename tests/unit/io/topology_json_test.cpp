#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "expect_error.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::topology_json_test {
namespace {

/// GPU 0 -> switch 2 -> GPU 1 and back.
Json star() {
  return parse_json(R"({
    "format": "rondo-topology", "version": 1, "name": "star", "source": "by hand",
    "nodes": [{"id": 0, "kind": "gpu", "chassis": 0, "name": "a"},
              {"id": 1, "kind": "gpu", "chassis": 1},
              {"id": 2, "kind": "switch", "multicast": false, "forwarding": "store_and_forward",
               "buffer_bytes": 1e6}],
    "links": [{"id": 0, "src": 0, "dst": 2, "bandwidth_GBps": 50.0, "latency_us": 0.7},
              {"id": 1, "src": 2, "dst": 1, "bandwidth_GBps": 50, "latency_us": 0},
              {"id": 2, "src": 1, "dst": 2, "bandwidth_GBps": 0.1, "latency_us": 0.7},
              {"id": 3, "src": 2, "dst": 0, "bandwidth_GBps": 50.0, "latency_us": 0.7}],
    "shared_bandwidth": [{"name": "nic", "links": [0, 3], "bandwidth_GBps": 60.5}]})",
                    "star.json");
}

template <class Change>
void expect_refused(ExitCode code, std::initializer_list<std::string> fragments, Change change) {
  Json json = star();
  change(json);
  SCOPED_TRACE(json.dump());
  expect_error(code, fragments, [&] { topology_from_json(json); });
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TopologyJson, ReadsEveryField) {
  const Topology topology = topology_from_json(star());
  EXPECT_EQ(topology.name(), "star");
  EXPECT_EQ(topology.source(), "by hand");
  ASSERT_EQ(topology.num_nodes(), 3U);
  EXPECT_EQ(topology.num_gpus(), 2U);
  EXPECT_EQ(topology.node(NodeId{0}).chassis, 0);
  EXPECT_EQ(topology.node(NodeId{0}).name, "a");
  const Node& hub = topology.node(NodeId{2});
  EXPECT_EQ(hub.kind, NodeKind::switch_);
  EXPECT_EQ(hub.chassis, std::nullopt);
  EXPECT_FALSE(hub.multicast);
  EXPECT_EQ(hub.forwarding, Forwarding::store_and_forward);
  EXPECT_EQ(hub.buffer_bytes, 1e6);
  ASSERT_EQ(topology.num_links(), 4U);
  const Link& slow = topology.link(LinkId{2});
  EXPECT_EQ(slow.src, NodeId{1});
  EXPECT_EQ(slow.dst, NodeId{2});
  EXPECT_EQ(slow.bandwidth_GBps, 0.1);
  EXPECT_EQ(slow.latency_us, 0.7);
  ASSERT_EQ(topology.shared_bandwidth().size(), 1U);
  EXPECT_EQ(topology.shared_bandwidth()[0].links, (std::vector<LinkId>{LinkId{0}, LinkId{3}}));
  EXPECT_EQ(topology.shared_bandwidth()[0].bandwidth_GBps, 60.5);
}

TEST(TopologyJson, OptionalKeysHaveTheirDefaults) {
  Json json = star();
  json.erase("source");
  json.erase("shared_bandwidth");
  json["nodes"][2] = {{"id", 2}, {"kind", "switch"}};
  const Topology topology = topology_from_json(json);
  EXPECT_TRUE(topology.shared_bandwidth().empty());
  EXPECT_TRUE(topology.node(NodeId{2}).multicast);
  EXPECT_EQ(topology.node(NodeId{2}).forwarding, Forwarding::cut_through);
  EXPECT_EQ(topology.node(NodeId{2}).buffer_bytes, 0);
}

TEST(TopologyJson, RoundTripKeepsEveryBit) {
  const Json once = topology_to_json(topology_from_json(star()));
  const Json twice = topology_to_json(topology_from_json(parse_json(format_json(once), "x")));
  EXPECT_EQ(once, twice);
  EXPECT_EQ(once["links"][2]["bandwidth_GBps"].get<double>(), 0.1);
}

/// star() with all that only version 2 can say.
Json newest_star() {
  Json json = star();
  json["version"] = 2;
  json["nodes"][2]["reduce"] = true;
  json["links"][0]["message_us"] = 1.3;
  json["links"][2]["bandwidth_steps"] = {{{"from_us", 0}, {"GBps", 0.1}}, {{"from_us", 0.3}, {"GBps", 0}}};
  return json;
}

TEST(TopologyJson, ReadsAndWritesVersion2) {
  const Topology topology = topology_from_json(newest_star());
  EXPECT_TRUE(topology.node(NodeId{2}).reduce);
  EXPECT_EQ(topology.link(LinkId{0}).message_us, 1.3);
  EXPECT_EQ(topology.link(LinkId{1}).message_us, 0);
  EXPECT_EQ(topology.link(LinkId{2}).bandwidth_steps, (std::vector<BandwidthStep>{{0, 0.1}, {0.3, 0}}));
  const Json written = topology_to_json(topology);
  EXPECT_EQ(written["version"], 2);
  EXPECT_EQ(written["links"], newest_star()["links"]);
  EXPECT_EQ(topology_to_json(topology_from_json(written)), written);
}

TEST(TopologyJson, AFileOfVersion1HasNothingOfVersion2) {
  expect_refused(ExitCode::bad_data, {"links[3]", "'message_us' is of version 2", "version 1"},
                 [](Json& j) { j["links"][3]["message_us"] = 0; });
  expect_refused(ExitCode::bad_data, {"nodes[2]", "'reduce' is of version 2"},
                 [](Json& j) { j["nodes"][2]["reduce"] = false; });
  Json json = star();  // a key of version 1 that nothing supported
  json["links"][2]["bandwidth_steps"] = newest_star()["links"][2]["bandwidth_steps"];
  EXPECT_EQ(topology_to_json(topology_from_json(json))["version"], 2);
}

TEST(TopologyJson, WritesVersion2OnlyWhereItMust) {
  const auto version_after = [](auto change) {
    Json json = star();
    json["version"] = 2;
    change(json);
    return topology_to_json(topology_from_json(json))["version"].get<int>();
  };
  EXPECT_EQ(version_after([](Json&) {}), 1);
  EXPECT_EQ(version_after([](Json& j) { j["links"][0]["message_us"] = 0; }), 1);
  EXPECT_EQ(version_after([](Json& j) { j["nodes"][2]["reduce"] = false; }), 1);
  EXPECT_EQ(version_after([](Json& j) { j["links"][0]["message_us"] = 0.1; }), 2);
  EXPECT_EQ(version_after([](Json& j) { j["nodes"][2]["reduce"] = true; }), 2);
  EXPECT_EQ(version_after([](Json& j) {
              j["links"][0]["bandwidth_steps"] = {{{"from_us", 0}, {"GBps", 50}}};
            }),
            2);
  const Json plain = topology_to_json(topology_from_json(star()));
  for (const char* key : {"message_us", "bandwidth_steps", "\"reduce\""})
    EXPECT_EQ(plain.dump().find(key), std::string::npos) << key;
}

TEST(TopologyJson, RefusesBadCostsAndSteps) {
  const auto expect_steps_refused = [](Json steps, std::initializer_list<std::string> fragments) {
    expect_refused(ExitCode::bad_data, fragments, [&](Json& j) { j["links"][1]["bandwidth_steps"] = steps; });
  };
  const auto expect_newest_refused = [](std::initializer_list<std::string> fragments, auto change) {
    expect_refused(ExitCode::bad_data, fragments, [&](Json& j) {
      j["version"] = 2;
      change(j);
    });
  };
  const auto step = [](const Json& from_us, const Json& GBps) {
    return Json{{"from_us", from_us}, {"GBps", GBps}};
  };
  expect_steps_refused(Json::array(), {"links[1]", "bandwidth_steps is empty"});
  expect_steps_refused(Json::array({step(1, 50)}), {"link 1", "50 GB/s from 1 us", "from 0"});
  expect_steps_refused(Json::array({step(0, 25)}), {"link 1", "25 GB/s from 0 us", "bandwidth_GBps, 50"});
  expect_steps_refused(Json::array({step(0, 50), step(2, 1), step(2, 3)}), {"link 1", "from 2 us", "ascend"});
  expect_steps_refused(Json::array({step(0, 50), step(2, -1)}), {"link 1", "-1 GB/s", "0 or more"});
  expect_steps_refused(Json::array({step(0, 50), step("2", 1)}),
                       {"links[1].bandwidth_steps[1].from_us", "\"2\""});
  expect_steps_refused(Json::array({{{"from_us", 0}, {"bandwidth_GBps", 50}}}),
                       {"links[1].bandwidth_steps[0]", "'bandwidth_GBps'", "from_us, GBps"});
  expect_newest_refused({"link 1", "message_us is -0.5"},
                        [](Json& j) { j["links"][1]["message_us"] = -0.5; });
  expect_newest_refused({"links[1].message_us", "null"},
                        [](Json& j) { j["links"][1]["message_us"] = nullptr; });
  expect_newest_refused({"nodes[2].reduce", "true or false"}, [](Json& j) { j["nodes"][2]["reduce"] = 1; });
  expect_newest_refused({"nodes[0]", "'reduce'"}, [](Json& j) { j["nodes"][0]["reduce"] = true; });
}

TEST(TopologyJson, ShippedFabricsRoundTrip) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RONDO_SOURCE_DIR "/jobs/topologies")) {
    SCOPED_TRACE(entry.path().string());
    const Json file = parse_json(text_of(entry.path()), entry.path().filename().string());
    const Topology topology = topology_from_json(file);
    EXPECT_EQ(topology.name(), entry.path().stem().string());
    const Json written = topology_to_json(topology);
    EXPECT_EQ(written["links"], file["links"]);
    EXPECT_EQ(topology_to_json(topology_from_json(written)), written);
    ++files;
  }
  EXPECT_GE(files, 6);
}

TEST(LoadTopology, TakesAShippedNameAFileOrAFamily) {
  const std::vector<std::string> names = shipped_topologies();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(RONDO_SOURCE_DIR "/jobs/topologies")) {
    files.push_back(entry.path().stem());
    EXPECT_EQ(topology_to_json(load_topology(files.back())), topology_to_json(load_topology(entry.path())));
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(names, files);
  EXPECT_EQ(load_topology("ring:gpus=5").num_gpus(), 5U);
  expect_error(ExitCode::usage, {"no family", "did you mean 'torus'?"}, [] { load_topology("tors:dims=4"); });
  expect_error(ExitCode::no_input, {"neither shipped", "did you mean 'dgx1'?"}, [] { load_topology("dgx"); });
  expect_error(ExitCode::no_input, {"no/such.json"}, [] { load_topology("no/such.json"); });
}

TEST(TopologyJson, NamesUnknownKeysAndTheirPlace) {
  expect_refused(ExitCode::bad_data,
                 {"links[3]", "unknown key 'bandwith_GBps'", "id, src, dst, bandwidth_GBps, latency_us"},
                 [](Json& j) { j["links"][3]["bandwith_GBps"] = 1; });
  expect_refused(ExitCode::bad_data, {"nodes[0]", "'colour'"}, [](Json& j) { j["nodes"][0]["colour"] = 1; });
  expect_refused(ExitCode::bad_data, {"nodes[0]", "'multicast'"},
                 [](Json& j) { j["nodes"][0]["multicast"] = true; });
  expect_refused(ExitCode::bad_data, {"top level", "'node'"}, [](Json& j) { j["node"] = 1; });
  expect_refused(ExitCode::bad_data, {"shared_bandwidth[0]", "'link'"},
                 [](Json& j) { j["shared_bandwidth"][0]["link"] = 1; });
}

TEST(TopologyJson, RefusesMemoryBelowZero) {
  expect_refused(ExitCode::bad_data, {"node 1", "buffer_bytes is -1"},
                 [](Json& j) { j["nodes"][1]["buffer_bytes"] = -1; });
}

TEST(TopologyJson, RefusesIdsOutOfOrder) {
  expect_refused(ExitCode::bad_data, {"nodes[1]", "id is 0, a duplicate", "has to be 1"},
                 [](Json& j) { j["nodes"][1]["id"] = 0; });
  expect_refused(ExitCode::bad_data, {"links[2]", "id is 7", "has to be 2"},
                 [](Json& j) { j["links"][2]["id"] = 7; });
  expect_refused(ExitCode::bad_data, {"links[2].id", "1.5", "integer"},
                 [](Json& j) { j["links"][2]["id"] = 1.5; });
}

TEST(TopologyJson, RefusesDanglingLinksAndSelfLoops) {
  expect_refused(ExitCode::bad_data, {"links[0].dst", "99", "from 0 to 2"},
                 [](Json& j) { j["links"][0]["dst"] = 99; });
  expect_refused(ExitCode::bad_data, {"links[0].src", "-1"}, [](Json& j) { j["links"][0]["src"] = -1; });
  expect_refused(ExitCode::bad_data, {"links[0].src", "18446744073709551615"},
                 [](Json& j) { j["links"][0]["src"] = std::uint64_t{18446744073709551615U}; });
  expect_refused(ExitCode::bad_data, {"link 0", "node 2"}, [](Json& j) { j["links"][0]["src"] = 2; });
  expect_refused(ExitCode::bad_data, {"shared_bandwidth[0].links[1]", "4", "from 0 to 3"}, [](Json& j) {
    j["shared_bandwidth"][0]["links"] = {0, 4};
  });
}

TEST(TopologyJson, RefusesBadFigures) {
  for (const double bandwidth : {0.0, -1.0}) {
    expect_refused(ExitCode::bad_data, {"link 1", "bandwidth_GBps", format_number(bandwidth)},
                   [&](Json& j) { j["links"][1]["bandwidth_GBps"] = bandwidth; });
  }
  expect_refused(ExitCode::bad_data, {"link 1", "latency_us", "-0.5"},
                 [](Json& j) { j["links"][1]["latency_us"] = -0.5; });
  expect_refused(ExitCode::bad_data, {"node 2", "buffer_bytes", "-3"},
                 [](Json& j) { j["nodes"][2]["buffer_bytes"] = -3; });
}

TEST(TopologyJson, RefusesWrongTypes) {
  expect_refused(ExitCode::bad_data, {"links[1].bandwidth_GBps", "\"50\"", "a number"},
                 [](Json& j) { j["links"][1]["bandwidth_GBps"] = "50"; });
  expect_refused(ExitCode::bad_data, {"links[1].latency_us", "null"},
                 [](Json& j) { j["links"][1]["latency_us"] = nullptr; });
  expect_refused(ExitCode::bad_data, {"nodes is an object", "an array"},
                 [](Json& j) { j["nodes"] = Json::object(); });
  expect_refused(ExitCode::bad_data, {"nodes[0] is 7", "an object"}, [](Json& j) { j["nodes"][0] = 7; });
  expect_refused(ExitCode::bad_data, {"nodes[2].multicast", "true or false"},
                 [](Json& j) { j["nodes"][2]["multicast"] = 1; });
  expect_refused(ExitCode::bad_data, {"the document is an array"}, [](Json& j) { j = Json::array(); });
}

TEST(TopologyJson, RefusesWrongWordsAndMissingKeys) {
  expect_refused(ExitCode::bad_data, {"nodes[0]", "kind is 'tpu'", "gpu or switch"},
                 [](Json& j) { j["nodes"][0]["kind"] = "tpu"; });
  expect_refused(ExitCode::bad_data, {"nodes[2]", "forwarding is 'wormhole'", "store_and_forward"},
                 [](Json& j) { j["nodes"][2]["forwarding"] = "wormhole"; });
  expect_refused(ExitCode::bad_data, {"links[1]", "'latency_us' is missing"},
                 [](Json& j) { j["links"][1].erase("latency_us"); });
  expect_refused(ExitCode::bad_data, {"format", "\"rondo-schedule\"", "\"rondo-topology\""},
                 [](Json& j) { j["format"] = "rondo-schedule"; });
  expect_refused(ExitCode::bad_data, {"version is 3", "1 or 2"}, [](Json& j) { j["version"] = 3; });
  expect_refused(ExitCode::bad_data, {"nodes[0].name", "at most 256 bytes"},
                 [](Json& j) { j["nodes"][0]["name"] = std::string(300, 'x'); });
}

TEST(TopologyJson, RefusesOneGpu) {
  expect_refused(ExitCode::bad_data, {"two GPUs"}, [](Json& j) {
    j["nodes"][1] = {{"id", 1}, {"kind", "switch"}};
  });
}

}  // namespace
}  // namespace rondo::topology_json_test
