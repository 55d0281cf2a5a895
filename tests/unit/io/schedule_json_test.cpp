#include <gtest/gtest.h>

#include "example_schedule.hpp"
#include "expect_error.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "temporary_folder.hpp"

namespace rondo::schedule_json_test {
namespace {

template <class Change>
void expect_refused(ExitCode code, std::initializer_list<std::string> fragments, Change change) {
  Json json = schedule_to_json(example_schedule());
  change(json);
  SCOPED_TRACE(json.dump());
  expect_error(code, fragments, [&] { schedule_from_json(json); });
}

TEST(ScheduleJson, HasTheKeysOfTheFormat) {
  const Json json = schedule_to_json(example_schedule());
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"format", "version", "producer", "topology", "collective",
                                            "size_bytes", "chunk_bytes", "chunks", "sends", "finish_us",
                                            "algorithm_bandwidth_GBps", "lower_bound", "gap"}));
  EXPECT_EQ(json["collective"], "broadcast");
  EXPECT_EQ(json["chunk_bytes"], 1500.0);
  EXPECT_EQ(json["chunks"].dump(), R"({"origin":[0,0],"destinations":[[1,2],[1,2]]})");
  EXPECT_EQ(json["sends"]["chunk"].dump(), "[0,1,0,1]");
  EXPECT_EQ(json["sends"]["link"].dump(), "[0,0,1,1]");
  EXPECT_EQ(json["lower_bound"]["certificate"].dump(), R"({"kind":"latency","source":0,"destination":2})");
  EXPECT_DOUBLE_EQ(json["algorithm_bandwidth_GBps"].get<double>(), 3000 / (12.3 * 1e3));
}

TEST(ScheduleJson, RoundTripKeepsEveryBit) {
  for (const ProvenSchedule& proven : {example_schedule(), uneven_schedule(), newest_schedule()}) {
    const Json once = schedule_to_json(proven);
    const ProvenSchedule read = schedule_from_json(parse_json(once.dump(), "schedule.json"));
    EXPECT_EQ(schedule_to_json(read), once);
    EXPECT_EQ(schedule_digest(read.demand, read.schedule), schedule_digest(proven.demand, proven.schedule));
    EXPECT_EQ(read.schedule.finish_us, proven.schedule.finish_us);
  }
}

/// The broadcast of the example, from GPU 0 to GPU 1 alone and with no others to relay.
ProvenSchedule schedule_in_a_group() {
  ProvenSchedule proven = example_schedule();
  const CollectiveShape shape{.group = {GpuId{0}, GpuId{1}}, .relays = false};
  proven.demand = make_demand(Collective::broadcast, 3000, 3, 2, GpuId{0}, shape);
  std::erase_if(proven.schedule.sends, [](const Send& send) { return send.link == LinkId{1}; });
  proven.schedule.finish_us = 3.1;
  proven.lower_bound.reset();
  return proven;
}

TEST(ScheduleJson, KeepsGroupAndCounts) {
  ProvenSchedule by_counts = uneven_schedule();
  by_counts.demand = make_demand(Collective::gather, 30, 3, 1, GpuId{2}, {.counts = {10, 20, 0}});
  by_counts.schedule = {.finish_us = 1};
  by_counts.lower_bound.reset();
  const TemporaryFolder folder;
  for (const ProvenSchedule& proven : {schedule_in_a_group(), by_counts}) {
    const Json json = schedule_to_json(proven);
    EXPECT_EQ(json["version"], 2);
    EXPECT_EQ(schedule_from_json(json).demand.shape(), proven.demand.shape());
    write_schedule_hdf5(folder.path() / "s.h5", proven, "");
    EXPECT_EQ(read_schedule_hdf5(folder.path() / "s.h5").demand.shape(), proven.demand.shape());
    Json old = json;
    old["version"] = 1;
    expect_error(ExitCode::bad_data, {"version 2"}, [&] { schedule_from_json(old); });
  }
  Json json = schedule_to_json(schedule_in_a_group());
  json["relay"] = "some";
  expect_error(ExitCode::bad_data, {"relay is 'some'", "none"}, [&] { schedule_from_json(json); });
  json["relay"] = "none";
  json["group"] = {0, 2};
  expect_error(ExitCode::bad_data, {"a destination is GPU 1", "0,2"}, [&] { schedule_from_json(json); });
}

TEST(ScheduleJson, KeepsEveryKindOfCertificate) {
  ProvenSchedule proven = example_schedule();
  proven.lower_bound = LowerBound{3.1, CutCertificate{{NodeId{0}, NodeId{3}}, 3000}};
  const auto cut = schedule_from_json(schedule_to_json(proven)).lower_bound;
  ASSERT_TRUE(cut && std::holds_alternative<CutCertificate>(cut->certificate));
  EXPECT_EQ(std::get<CutCertificate>(cut->certificate).nodes, (std::vector<NodeId>{NodeId{0}, NodeId{3}}));
  EXPECT_EQ(std::get<CutCertificate>(cut->certificate).bytes, 3000);
  proven.lower_bound = LowerBound{0.3, MetricCertificate{{0.1, 1.0 / 3}}};
  const auto metric = schedule_from_json(schedule_to_json(proven)).lower_bound;
  ASSERT_TRUE(metric && std::holds_alternative<MetricCertificate>(metric->certificate));
  EXPECT_EQ(std::get<MetricCertificate>(metric->certificate).length, (std::vector<double>{0.1, 1.0 / 3}));
  for (const bool backwards : {false, true}) {
    proven.lower_bound = LowerBound{0.3, TimeCutCertificate{GpuId{1}, {0, 0.3, 1.0 / 7, 0}, backwards}};
    const Json json = schedule_to_json(proven);
    EXPECT_EQ(json["version"], 2);
    EXPECT_EQ(json["lower_bound"]["certificate"][backwards ? "source" : "destination"], 1);
    const auto bound = schedule_from_json(json).lower_bound;
    ASSERT_TRUE(bound && std::holds_alternative<TimeCutCertificate>(bound->certificate));
    const auto& time_cut = std::get<TimeCutCertificate>(bound->certificate);
    EXPECT_EQ(time_cut.gpu, GpuId{1});
    EXPECT_EQ(time_cut.alpha_us, (std::vector<double>{0, 0.3, 1.0 / 7, 0}));
    EXPECT_EQ(time_cut.backwards, backwards);
  }
  proven.lower_bound = LowerBound{
      0.3, TimeCutCertificate{.gpu = GpuId{1}, .alpha_us = {0, 0.3, 0}, .sources = {GpuId{0}, GpuId{2}}}};
  const Json counted = schedule_to_json(proven);
  EXPECT_EQ(counted["lower_bound"]["certificate"]["sources"], Json({0, 2}));
  const auto read = schedule_from_json(counted).lower_bound;
  ASSERT_TRUE(read && std::holds_alternative<TimeCutCertificate>(read->certificate));
  EXPECT_EQ(std::get<TimeCutCertificate>(read->certificate).sources,
            (std::vector<GpuId>{GpuId{0}, GpuId{2}}));
  EXPECT_FALSE(std::get<TimeCutCertificate>(read->certificate).backwards);
  proven.lower_bound = LowerBound{0.3, PricesCertificate{{0, 0.1}, 0.3, {2, 7}, {1.0 / 3, 0.1}}};
  const Json json = schedule_to_json(proven);
  EXPECT_EQ(json["version"], 2);
  const auto bound = schedule_from_json(json).lower_bound;
  ASSERT_TRUE(bound && std::holds_alternative<PricesCertificate>(bound->certificate));
  const auto& prices = std::get<PricesCertificate>(bound->certificate);
  EXPECT_EQ(prices.from_us, (std::vector<double>{0, 0.1}));
  EXPECT_EQ(prices.until_us, 0.3);
  EXPECT_EQ(prices.place, (std::vector<std::int32_t>{2, 7}));
  EXPECT_EQ(prices.price, (std::vector<double>{1.0 / 3, 0.1}));
}

TEST(ScheduleJson, KeepsKnowledge) {
  ProvenSchedule proven = example_schedule();
  for (const bool backwards : {false, true}) {
    proven.lower_bound = LowerBound{
        0.3, KnowledgeCertificate{
                 GpuId{1}, {GpuId{0}, GpuId{2}}, {{NodeId{1}, NodeId{3}}}, {0, 1.0 / 7, 0.3}, backwards}};
    const Json json = schedule_to_json(proven);
    EXPECT_EQ(json["version"], 2);
    EXPECT_EQ(json["lower_bound"]["certificate"][backwards ? "destinations" : "sources"],
              (std::vector{0, 2}));
    const auto bound = schedule_from_json(json).lower_bound;
    ASSERT_TRUE(bound && std::holds_alternative<KnowledgeCertificate>(bound->certificate));
    const auto& knowledge = std::get<KnowledgeCertificate>(bound->certificate);
    EXPECT_EQ(knowledge.gpu, GpuId{1});
    EXPECT_EQ(knowledge.sources, (std::vector<GpuId>{GpuId{0}, GpuId{2}}));
    EXPECT_EQ(knowledge.sets, (std::vector<std::vector<NodeId>>{{NodeId{1}, NodeId{3}}}));
    EXPECT_EQ(knowledge.times_us, (std::vector<double>{0, 1.0 / 7, 0.3}));
    EXPECT_EQ(knowledge.backwards, backwards);
  }
}

TEST(ScheduleJson, SaysVersion2OnlyWhereItMust) {
  EXPECT_EQ(schedule_to_json(example_schedule())["version"], 1);
  EXPECT_EQ(schedule_to_json(example_schedule())["topology"]["version"], 1);
  EXPECT_EQ(schedule_to_json(newest_schedule())["topology"]["version"], 2);
  const auto version_after = [](auto change) {
    ProvenSchedule proven = example_schedule();
    change(proven);
    return schedule_to_json(proven)["version"].get<int>();
  };
  EXPECT_EQ(version_after([](ProvenSchedule&) {}), 1);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.topology = newest_schedule().topology; }), 2);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.demand = newest_schedule().demand; }), 2);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.lower_bound = newest_schedule().lower_bound; }), 2);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.schedule.sends[0].op = SendOp::reduce; }), 2);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.schedule.sends[0].transfer = 0; }), 2);
  EXPECT_EQ(version_after([](ProvenSchedule& p) { p.schedule.sends[0].rate_GBps = 1; }), 2);
  Json third = schedule_to_json(example_schedule());
  third["version"] = 3;
  expect_error(ExitCode::bad_data, {"version is 3", "1 or 2"}, [&] { schedule_from_json(third); });
}

TEST(ScheduleJson, AFileOfVersion1HasNothingOfVersion2) {
  for (const auto& [group, key] :
       std::initializer_list<std::pair<const char*, const char*>>{{"chunks", "sources"},
                                                                  {"chunks", "sources_ready_us"},
                                                                  {"chunks", "reduce"},
                                                                  {"chunks", "held"},
                                                                  {"sends", "transfer"},
                                                                  {"sends", "rate_GBps"}}) {
    const Json newest = schedule_to_json(newest_schedule());
    expect_refused(ExitCode::bad_data, {group, std::string("'") + key + "' is of version 2", "version 1"},
                   [&](Json& j) { j[group][key] = newest[group][key]; });
  }
}

TEST(ScheduleJson, AFileOfVersion1IsWrittenAsItWas) {
  const Json file =
      parse_json(content_of(RONDO_SOURCE_DIR "/tests/fuzz/corpus/schedule_json/ring.json"), "ring.json");
  EXPECT_EQ(schedule_to_json(schedule_from_json(file)).dump(), file.dump());
}

TEST(ScheduleJson, HasTheKeysOfVersion2) {
  const Json json = schedule_to_json(newest_schedule());
  EXPECT_EQ(json["chunks"]["origin"].dump(), "[0,1]");
  EXPECT_EQ(json["chunks"]["sources"].dump(), "[[0,1,2],[1,2]]");
  EXPECT_EQ(json["chunks"]["sources_ready_us"].dump(), "[[0.1,0.0,0.5],[2.5,2.5]]");
  EXPECT_EQ(json["chunks"]["reduce"].dump(), "[1,0]");
  EXPECT_EQ(json["chunks"]["held"].dump(),
            R"([{"chunk":0,"gpu":2,"sources":[1,2]},{"chunk":0,"gpu":0,"sources":[]}])");
  EXPECT_EQ(json["sends"]["op"].dump(), "[0,1,0,0]");
  EXPECT_EQ(json["sends"]["transfer"].dump(), "[-1,7,7,-1]");
  EXPECT_EQ(json["sends"]["rate_GBps"].dump(), "[null,null,0.14285714285714285,null]");
  EXPECT_EQ(json["lower_bound"]["certificate"].dump(),
            R"({"kind":"partition","part":[0,1,1,-1],"side":"leave"})");
  const ProvenSchedule read = schedule_from_json(json);
  EXPECT_EQ(read.demand.contributions()[0].source_ready_us, (std::vector<double>{0.1, 0, 0.5}));
  EXPECT_EQ(read.demand.contributions()[0].held, newest_schedule().demand.contributions()[0].held);
  EXPECT_TRUE(read.demand.contributions()[1].source_ready_us.empty());
  EXPECT_EQ(read.schedule.sends[2].transfer, 7);
  EXPECT_FALSE(read.schedule.sends[1].has_rate());
}

TEST(ScheduleJson, RefusesBadTransfersAndSums) {
  const auto expect_refused_newest = [](std::initializer_list<std::string> fragments, auto change) {
    Json json = schedule_to_json(newest_schedule());
    change(json["chunks"], json["sends"], json["lower_bound"]["certificate"]);
    SCOPED_TRACE(json.dump());
    expect_error(ExitCode::bad_data, fragments, [&] { schedule_from_json(json); });
  };
  expect_refused_newest({"sends.transfer[0] is -2"}, [](Json&, Json& s, Json&) { s["transfer"][0] = -2; });
  expect_refused_newest({"sends.transfer has 3"}, [](Json&, Json& s, Json&) { s["transfer"].erase(0); });
  expect_refused_newest({"sends.rate_GBps[2] is 0", "positive"},
                        [](Json&, Json& s, Json&) { s["rate_GBps"][2] = 0; });
  expect_refused_newest({"sends.rate_GBps[1]", "\"50\"", "null"},
                        [](Json&, Json& s, Json&) { s["rate_GBps"][1] = "50"; });
  expect_refused_newest({"sends.rate_GBps has 5"},
                        [](Json&, Json& s, Json&) { s["rate_GBps"].push_back(nullptr); });
  expect_refused_newest({"contribution 0", "source 1 is named twice"}, [](Json& c, Json&, Json&) {
    c["sources"][0] = {0, 1, 1};
  });
  expect_refused_newest({"chunks.origin[1] is 1", "chunks.sources[1], 2"}, [](Json& c, Json&, Json&) {
    c["sources"][1] = {2, 1};
  });
  expect_refused_newest({"chunks.sources[1] is empty"}, [](Json& c, Json&, Json&) {
    c["sources"][1] = Json::array();
    c["sources_ready_us"][1] = Json::array();
  });
  expect_refused_newest({"chunks.sources[4] is 3", "0 to 2"},
                        [](Json& c, Json&, Json&) { c["sources"][1][1] = 3; });
  expect_refused_newest({"chunks.sources has 1", "2"}, [](Json& c, Json&, Json&) {
    c["sources"].erase(1);
    c["sources_ready_us"].erase(1);
  });
  expect_refused_newest({"contribution 0", "two sources or more; it has 1"}, [](Json& c, Json&, Json&) {
    for (const char* key : {"sources", "sources_ready_us", "held"}) c.erase(key);
  });
  expect_refused_newest({"'sources_ready_us' needs 'sources'"},
                        [](Json& c, Json&, Json&) { c.erase("sources"); });
  expect_refused_newest({"sources_ready_us[1] has 1"},
                        [](Json& c, Json&, Json&) { c["sources_ready_us"][1].erase(0); });
  expect_refused_newest({"contribution 0", "ready_us is -1"},
                        [](Json& c, Json&, Json&) { c["sources_ready_us"][0][1] = -1; });
  expect_refused_newest({"chunks.reduce has 1"}, [](Json& c, Json&, Json&) { c["reduce"].erase(0); });
  expect_refused_newest({"chunks.reduce[0] is 2", "0 to 1"},
                        [](Json& c, Json&, Json&) { c["reduce"][0] = 2; });
  expect_refused_newest({"chunks.held_chunk[1] is 2", "0 to 1"},
                        [](Json& c, Json&, Json&) { c["held"][1]["chunk"] = 2; });
  expect_refused_newest({"chunks.held_gpu[0] is 3"}, [](Json& c, Json&, Json&) { c["held"][0]["gpu"] = 3; });
  expect_refused_newest({"chunks.held[1]", "'from'"},
                        [](Json& c, Json&, Json&) { c["held"][1]["from"] = 3; });
  expect_refused_newest({"contribution 0", "GPU 2 holds two sums"},
                        [](Json& c, Json&, Json&) { c["held"][1]["gpu"] = 2; });
  expect_refused_newest({"contribution 1", "does not reduce"},
                        [](Json& c, Json&, Json&) { c["held"][0]["chunk"] = 1; });
  expect_refused_newest({"lower_bound.certificate", "side is 'out'", "enter or leave"},
                        [](Json&, Json&, Json& p) { p["side"] = "out"; });
  expect_refused_newest({"lower_bound.certificate.part[1] is -2"},
                        [](Json&, Json&, Json& p) { p["part"][1] = -2; });
}

TEST(ScheduleJson, OptionalFiguresMayBeAbsent) {
  Json json = schedule_to_json(example_schedule());
  for (const char* key : {"producer", "algorithm_bandwidth_GBps", "gap", "lower_bound"}) json.erase(key);
  EXPECT_FALSE(schedule_from_json(json).lower_bound);
}

TEST(ScheduleJson, FiguresMayBeRoundedToFiveDigits) {
  Json json = schedule_to_json(example_schedule());
  json["algorithm_bandwidth_GBps"] = 0.2439;  // 0.243902...
  json["gap"] = 14.375;
  EXPECT_NO_THROW(schedule_from_json(json));
}

TEST(ScheduleJson, RefusesFiguresThatDoNotFollow) {
  expect_refused(ExitCode::bad_data, {"algorithm_bandwidth_GBps is 0.25"},
                 [](Json& j) { j["algorithm_bandwidth_GBps"] = 0.25; });
  expect_refused(ExitCode::bad_data, {"gap is 0.5"}, [](Json& j) { j["gap"] = 0.5; });
  expect_refused(ExitCode::bad_data, {"algorithm_bandwidth_GBps"}, [](Json& j) { j["finish_us"] = 10; });
  expect_refused(ExitCode::bad_data, {"gap", "no lower_bound"}, [](Json& j) { j.erase("lower_bound"); });
}

TEST(ScheduleJson, RefusesArraysThatDisagree) {
  for (const char* key : {"link", "start_us", "end_us", "arrival_us", "op"}) {
    expect_refused(ExitCode::bad_data, {std::string("sends.") + key + " has 3 values", "4"},
                   [&](Json& j) { j["sends"][key].erase(3); });
  }
  expect_refused(ExitCode::bad_data, {"chunks.destinations has 1 values", "2"},
                 [](Json& j) { j["chunks"]["destinations"].erase(1); });
  expect_refused(ExitCode::bad_data, {"chunks.ready_us has 1"},
                 [](Json& j) { j["chunks"]["ready_us"] = {0}; });
  expect_refused(ExitCode::bad_data, {"chunk_bytes has 3"}, [](Json& j) { j["chunk_bytes"] = {1, 2, 3}; });
}

TEST(ScheduleJson, RefusesNumbersOutOfRange) {
  expect_refused(ExitCode::bad_data, {"sends.chunk[1] is 2", "0 to 1"},
                 [](Json& j) { j["sends"]["chunk"][1] = 2; });
  expect_refused(ExitCode::bad_data, {"sends.link[3] is 2", "0 to 1"},
                 [](Json& j) { j["sends"]["link"][3] = 2; });
  expect_refused(ExitCode::bad_data, {"sends.link[0]", "-1"}, [](Json& j) { j["sends"]["link"][0] = -1; });
  expect_refused(ExitCode::bad_data, {"sends.op[2] is 2"}, [](Json& j) { j["sends"]["op"][2] = 2; });
  expect_refused(ExitCode::bad_data, {"chunks.origin[0] is 3"},
                 [](Json& j) { j["chunks"]["origin"][0] = 3; });
  expect_refused(ExitCode::bad_data, {"chunks.destinations", "5"},
                 [](Json& j) { j["chunks"]["destinations"][1][0] = 5; });
  expect_refused(ExitCode::bad_data, {"bytes is 0"}, [](Json& j) { j["chunk_bytes"] = 0; });
  expect_refused(ExitCode::bad_data, {"sends.start_us[0]", "\"0\""},
                 [](Json& j) { j["sends"]["start_us"][0] = "0"; });
}

TEST(ScheduleJson, RefusesSendsOutOfOrder) {
  expect_refused(ExitCode::bad_data, {"sends[1]", "sends[0]", "sorted"},
                 [](Json& j) { j["sends"]["start_us"][0] = 1.55; });
}

TEST(ScheduleJson, RefusesUnknownKeysAndWords) {
  expect_refused(ExitCode::bad_data, {"unknown key 'finish'"}, [](Json& j) { j["finish"] = 1; });
  expect_refused(ExitCode::bad_data, {"sends: unknown key 'begin_us'"},
                 [](Json& j) { j["sends"]["begin_us"] = 1; });
  expect_refused(ExitCode::bad_data, {"topology.links[1]: unknown key 'x'"},
                 [](Json& j) { j["topology"]["links"][1]["x"] = 1; });
  expect_refused(ExitCode::bad_data, {"collective", "allsort"}, [](Json& j) { j["collective"] = "allsort"; });
  expect_refused(ExitCode::bad_data, {"lower_bound.certificate", "guess"},
                 [](Json& j) { j["lower_bound"]["certificate"]["kind"] = "guess"; });
  for (const char* more : {"source", "bytes"}) {
    expect_refused(ExitCode::bad_data, {"lower_bound.certificate"}, [&](Json& j) {
      j["lower_bound"]["certificate"] = {
          {"kind", "time_cut"}, {"destination", 2}, {"alpha_us", {0, 0, 1}}, {more, 1}};
    });
  }
  expect_refused(ExitCode::bad_data, {"lower_bound.certificate", "alpha_us"}, [](Json& j) {
    j["lower_bound"]["certificate"] = {{"kind", "time_cut"}, {"source", 2}};
  });
  const auto expect_sources_refused = [](const char* gpu, const Json& sources, const char* word) {
    expect_refused(ExitCode::bad_data, {"lower_bound.certificate", word}, [&](Json& j) {
      j["lower_bound"]["certificate"] = {
          {"kind", "time_cut"}, {gpu, 2}, {"alpha_us", {0, 0, 1}}, {"sources", sources}};
    });
  };
  expect_sources_refused("destination", Json::array(), "has to name a GPU");
  expect_sources_refused("destination", 1, "sources");
  expect_sources_refused("source", {0, 1}, "unknown key 'sources'");
}

}  // namespace
}  // namespace rondo::schedule_json_test
