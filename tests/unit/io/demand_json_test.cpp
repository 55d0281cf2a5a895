#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::demand_json_test {
namespace {

Topology ring() {
  TopologyData data{.name = "ring", .nodes = std::vector<Node>(3)};
  for (std::int32_t n = 0; n < 3; ++n) {
    data.links.push_back(
        {.src = NodeId{n}, .dst = NodeId{(n + 1) % 3}, .bandwidth_GBps = 1, .latency_us = 1});
  }
  return Topology(std::move(data));
}

Json demand_file() {
  return parse_json(R"({"format": "rondo-demand", "version": 1, "chunks": [
    {"id": 0, "bytes": 100.5, "sources": [0], "destinations": [1, 2], "reduce": false, "tenant": 0,
     "priority": 1.0, "ready_us": 0},
    {"id": 1, "bytes": 50, "sources": [2], "destinations": [0], "ready_us": 2.5}]})",
                    "demand.json");
}

template <class Change>
void expect_demand_refused(ExitCode code, std::initializer_list<std::string> fragments, Change change) {
  Json json = demand_file();
  change(json["chunks"][1]);
  SCOPED_TRACE(json.dump());
  expect_error(code, fragments, [&] { demand_from_json(json, ring(), 1); });
}

TEST(DemandJson, ReadsContributionsAndSplitsThem) {
  const Demand demand = demand_from_json(demand_file(), ring(), 2);
  EXPECT_EQ(demand.collective(), Collective::custom);
  EXPECT_EQ(demand.size_bytes(), 150.5);
  ASSERT_EQ(demand.contributions().size(), 2U);
  EXPECT_EQ(demand.num_chunks(), 4U);
  EXPECT_EQ(demand.contributions()[0].destinations, (std::vector<GpuId>{GpuId{1}, GpuId{2}}));
  EXPECT_EQ(demand.contributions()[1].origin, GpuId{2});
  EXPECT_EQ(demand.contributions()[1].ready_us, 2.5);
  EXPECT_EQ(demand.bytes(ChunkId{0}), 50.25);
}

TEST(DemandJson, RoundTrips) {
  const Json once = demand_to_json(demand_from_json(demand_file(), ring(), 1));
  EXPECT_EQ(once["chunks"][1].dump(),
            R"({"id":1,"bytes":50.0,"sources":[2],"destinations":[0],"ready_us":2.5})");
  EXPECT_EQ(demand_to_json(demand_from_json(once, ring(), 1)), once);
}

/// A sum, of which GPU 2 holds two thirds, and data of two holders.
Json sums() {
  return parse_json(R"({"format": "rondo-demand", "version": 2, "chunks": [
    {"id": 0, "bytes": 100.5, "sources": [2, 0, 1], "destinations": [0, 2], "reduce": true,
     "held": [{"gpu": 2, "sources": [2, 0]}, {"gpu": 1, "sources": []}], "ready_us": [0.5, 0.25, 0]},
    {"id": 1, "bytes": 50, "sources": [1, 2], "destinations": [0], "ready_us": 2.5}]})",
                    "sums.json");
}

TEST(DemandJson, ReadsSumsAndSeveralHolders) {
  const Demand demand = demand_from_json(sums(), ring(), 1);
  EXPECT_EQ(demand.kind(), DemandKind::all_reduction);
  const Contribution& sum = demand.contributions()[0];
  EXPECT_TRUE(sum.reduce);
  EXPECT_EQ(sum.origin, GpuId{0});
  EXPECT_EQ(sum.sources, (std::vector<GpuId>{GpuId{0}, GpuId{1}, GpuId{2}}));
  EXPECT_EQ(sum.source_ready_us, (std::vector<double>{0.25, 0, 0.5}));  // moved with their sources
  EXPECT_EQ(sum.held, (std::vector<HeldSum>{{GpuId{2}, {GpuId{0}, GpuId{2}}}, {GpuId{1}, {}}}));
  const Contribution& of_two = demand.contributions()[1];
  EXPECT_FALSE(of_two.reduce);
  EXPECT_EQ(of_two.sources, (std::vector<GpuId>{GpuId{1}, GpuId{2}}));
  EXPECT_EQ(of_two.ready_us, 2.5);
}

TEST(DemandJson, SumsRoundTrip) {
  const Json once = demand_to_json(demand_from_json(sums(), ring(), 1));
  EXPECT_EQ(once["version"], 2);
  EXPECT_EQ(once["chunks"][0].dump(),
            R"({"id":0,"bytes":100.5,"sources":[0,1,2],"destinations":[0,2],"reduce":true,)"
            R"("held":[{"gpu":2,"sources":[0,2]},{"gpu":1,"sources":[]}],"ready_us":[0.25,0.0,0.5]})");
  EXPECT_EQ(demand_to_json(demand_from_json(once, ring(), 1)), once);
  EXPECT_EQ(demand_to_json(demand_from_json(demand_file(), ring(), 1))["version"], 1);
}

TEST(DemandJson, Version1KnowsSourcesAndSumsButNothingHeld) {
  Json json = sums();
  json["version"] = 1;
  expect_error(ExitCode::bad_data, {"chunks[0]", "'held' is of version 2", "version 1"},
               [&] { demand_from_json(json, ring(), 1); });
  json["chunks"][0].erase("held");
  EXPECT_EQ(demand_to_json(demand_from_json(json, ring(), 1))["version"], 2);
}

TEST(DemandJson, OneSourceMayHaveAListOfOneTime) {
  Json json = demand_file();
  json["chunks"][1]["ready_us"] = {1.5};
  const Demand demand = demand_from_json(json, ring(), 1);
  EXPECT_EQ(demand.contributions()[1].ready_us, 1.5);
  EXPECT_EQ(demand.kind(), DemandKind::multicast);
}

TEST(DemandJson, RefusesBadSums) {
  const auto expect_sum_refused = [](std::initializer_list<std::string> fragments, auto change) {
    Json json = sums();
    change(json["chunks"][0]);
    SCOPED_TRACE(json.dump());
    expect_error(ExitCode::bad_data, fragments, [&] { demand_from_json(json, ring(), 1); });
  };
  expect_sum_refused({"chunks[0]", "'sources' is missing"}, [](Json& c) { c.erase("sources"); });
  expect_sum_refused({"chunks[0]", "sources is empty"}, [](Json& c) { c["sources"] = Json::array(); });
  expect_sum_refused({"source 0 is named twice"}, [](Json& c) { c["sources"] = {2, 0, 0}; });
  expect_sum_refused({"two sources or more; it has 1"}, [](Json& c) {
    c["sources"] = {0};
    c.erase("ready_us");
    c.erase("held");
  });
  expect_sum_refused({"chunks[0].reduce", "true or false"}, [](Json& c) { c["reduce"] = 1; });
  expect_sum_refused({"chunks[0]", "ready_us lists 2 times for 3 sources"}, [](Json& c) {
    c["ready_us"] = {0, 1};
  });
  expect_sum_refused({"contribution 0", "ready_us is -1"}, [](Json& c) { c["ready_us"][1] = -1; });
  expect_sum_refused({"chunks[0].held[0].gpu", "3", "0 to 2"}, [](Json& c) { c["held"][0]["gpu"] = 3; });
  expect_sum_refused({"chunks[0].held[1]", "unknown key 'source'"},
                     [](Json& c) { c["held"][1]["source"] = 1; });
  expect_sum_refused({"GPU 1 holds has to be the sum"}, [](Json& c) { c["held"][1]["sources"] = {1, 1}; });
  expect_sum_refused({"GPU 2 holds two sums"}, [](Json& c) { c["held"][1]["gpu"] = 2; });
  expect_sum_refused({"does not reduce"}, [](Json& c) {
    c["reduce"] = false;
    c["destinations"] = Json::array({1});
    c["sources"] = {0, 2};
    c["ready_us"] = 0;
  });
}

TEST(DemandJson, KeepsTenants) {
  Json json = demand_file();
  json["chunks"][1]["tenant"] = 3;
  json["chunks"][1]["priority"] = 2.5;
  const Demand demand = demand_from_json(json, ring(), 1);
  EXPECT_EQ(demand.contributions()[0].tenant, 0);
  EXPECT_EQ(demand.contributions()[1].tenant, 3);
  EXPECT_EQ(demand.contributions()[1].priority, 2.5);
  const Json again = demand_to_json(demand);
  EXPECT_EQ(again["version"], 2);
  EXPECT_EQ(demand_to_json(demand_from_json(again, ring(), 1)), again);
}

TEST(DemandJson, RefusesBadTenants) {
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "tenant", "-3"}, [](Json& c) { c["tenant"] = -3; });
  expect_demand_refused(ExitCode::bad_data, {"priority is 0", "positive"},
                        [](Json& c) { c["priority"] = 0; });
  expect_demand_refused(ExitCode::bad_data, {"tenant 0 has priority 2", "1"},
                        [](Json& c) { c["priority"] = 2; });
}

TEST(DemandJson, RefusesBadInput) {
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "unknown key 'byte'"},
                        [](Json& c) { c["byte"] = 1; });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "id is 0"}, [](Json& c) { c["id"] = 0; });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1].sources[0]", "3", "from 0 to 2"},
                        [](Json& c) { c["sources"] = {3}; });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "nobody has the data"},
                        [](Json& c) { c["sources"] = Json::array(); });
  expect_demand_refused(ExitCode::bad_data, {"nobody wants"},
                        [](Json& c) { c["destinations"] = Json::array(); });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1].destinations[1]", "-1"}, [](Json& c) {
    c["destinations"] = {0, -1};
  });
  expect_demand_refused(ExitCode::bad_data, {"twice"}, [](Json& c) { c["destinations"] = {0, 0}; });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "bytes is 0"}, [](Json& c) { c["bytes"] = 0; });
  expect_demand_refused(ExitCode::bad_data, {"chunks[1]", "bytes is -4"}, [](Json& c) { c["bytes"] = -4; });
  expect_demand_refused(ExitCode::bad_data, {"ready_us", "-1"}, [](Json& c) { c["ready_us"] = -1; });
}

TEST(DemandJson, RefusesAnEmptyDemand) {
  const Json json = {{"format", "rondo-demand"}, {"version", 1}, {"chunks", Json::array()}};
  expect_error(ExitCode::bad_data, {"chunks is empty"}, [&] { demand_from_json(json, ring(), 1); });
}

}  // namespace
}  // namespace rondo::demand_json_test
