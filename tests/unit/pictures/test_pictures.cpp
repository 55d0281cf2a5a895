#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "drawn_schedule.hpp"
#include "rondo/pictures/pictures.hpp"
#include "words.hpp"

namespace rondo::test_pictures {
namespace {

using Json = nlohmann::json;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

/// The Trace Event Format: what each kind of event has to have.
void expect_well_formed(const Json& event) {
  static const std::map<std::string, std::vector<std::string>> required = {
      {"M", {"name", "pid", "args"}},
      {"X", {"name", "pid", "tid", "ts", "dur"}},
      {"i", {"name", "pid", "tid", "ts", "s"}},
      {"C", {"name", "pid", "ts", "args"}},
      {"s", {"name", "cat", "id", "pid", "tid", "ts"}},
      {"f", {"name", "cat", "id", "pid", "tid", "ts", "bp"}}};
  const std::string phase = event.at("ph");
  ASSERT_TRUE(required.contains(phase)) << event;
  for (const std::string& key : required.at(phase)) EXPECT_TRUE(event.contains(key)) << event;
  for (const char* key : {"ts", "dur"}) {
    if (event.contains(key)) {
      EXPECT_TRUE(event[key].is_number() && event[key] >= 0) << event;
    }
  }
  for (const char* key : {"pid", "tid"}) {
    if (event.contains(key)) {
      EXPECT_TRUE(event[key].is_number_integer()) << event;
    }
  }
  if (phase == "C") {
    for (const Json& value : event["args"]) EXPECT_TRUE(value.is_number()) << event;
  }
  if (phase == "i") {
    EXPECT_TRUE((std::set<std::string>{"g", "p", "t"}.contains(event["s"]))) << event;
  }
}

TEST(Trace, HasATrackALinkAndAGpuAndMarksOfRounds) {
  const ProvenSchedule proven = test::line("b \"<\\> \n");
  const Json trace = Json::parse(trace_json({proven, {{0, 2.5}, {2.5, 5}}}));
  std::map<std::string, int> phases;
  std::map<int, std::set<std::string>> tracks;
  for (const Json& event : trace.at("traceEvents")) {
    expect_well_formed(event);
    ++phases[event["ph"]];
    if (event["name"] == "thread_name") tracks[event["pid"]].insert(event["args"]["name"]);
  }
  EXPECT_EQ(tracks[1].size(), 6U);
  EXPECT_TRUE(tracks[1].contains("s → c (1 GB/s)"));
  EXPECT_EQ(tracks[2], (std::set<std::string>{"a", "b \"<\\> ?", "c"}));
  EXPECT_EQ(phases["X"], 3 + 2);  // sends and rounds
  EXPECT_EQ(phases["i"], 2 + 2);  // arrivals at b and c, beginnings of rounds
  EXPECT_EQ(phases["s"], 2);      // a -> b -> s -> c
  EXPECT_EQ(phases["f"], 2);
  EXPECT_EQ(phases["C"], 3 + 2);
  const Json& last = trace["traceEvents"].back();  // c lacks nothing any more
  EXPECT_EQ(last["args"]["chunks"], 0);
  EXPECT_EQ(last["ts"], 5);
}

TEST(Trace, SlicesAreTheSends) {
  const ProvenSchedule proven = test::line();
  const Json trace = Json::parse(trace_json({proven}));
  std::vector<std::array<double, 3>> slices;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back({event["tid"], event["ts"], event["dur"]});
  }
  EXPECT_EQ(slices, (std::vector<std::array<double, 3>>{{0, 0, 1}, {1, 2, 1}, {2, 3, 1}}));
}

TEST(Trace, TellsOfPartialSumsAndSharedLinks) {
  const Json trace = Json::parse(trace_json({test::shared_sum()}));
  std::map<std::string, int> names;
  std::vector<double> load_GBps;
  std::set<int> tracks_of_shared;
  int adding = 0, arrows = 0;
  for (const Json& event : trace.at("traceEvents")) {
    expect_well_formed(event);
    if (event["ph"] == "i") ++names[event["name"]];
    if (event["ph"] == "s") ++arrows;
    if (event["name"] == "s → c load") load_GBps.push_back(event["args"]["GBps"]);
    if (event["ph"] != "X") continue;
    if (event["cat"] == "add") {
      ++adding;
      EXPECT_EQ(event["args"]["sources"], 1);
    } else {
      EXPECT_EQ(event["args"]["sources"], 3);
    }
    if (event["ts"] == 1 || event["ts"] == 1.5) tracks_of_shared.insert(event["tid"].get<int>());
  }
  EXPECT_EQ(adding, 4);
  EXPECT_EQ(tracks_of_shared.size(), 2U);
  EXPECT_EQ(load_GBps, (std::vector<double>{1, 2, 1, 0}));
  EXPECT_EQ(names,
            (std::map<std::string, int>{{"chunk 0 has the sum of 2 of 3", 1}, {"chunk 0 is summed up", 2}}));
  EXPECT_EQ(arrows, 2 + 2);  // through the switch, and from both to what c hands back
}

TEST(Svg, SendsThatAddArePaleAndSharesAreStacked) {
  const std::string svg = svg_picture({test::shared_sum()});
  EXPECT_EQ(count(svg, "fill-opacity"), 2U + 3);  // of the shared link three parts
  EXPECT_EQ(count(svg, "<title>chunk 0, the sum of 1 of 3, which is added, s → c"), 3U);
  EXPECT_EQ(count(svg, "<title>chunk 0, the whole sum, c → a"), 1U);
}

TEST(Svg, DrawsEveryLinkAndSendOfASmallSchedule) {
  const ProvenSchedule proven = test::line("<script>");
  const std::string svg = svg_picture({proven});
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count(svg, "data-link="), 6U);
  EXPECT_EQ(count(svg, "<title>chunk 0 of a"), 3U);
  EXPECT_EQ(count(svg, "<script"), 0U);
  EXPECT_EQ(count(svg, "http"), 1U);  // the namespace
  EXPECT_EQ(count(svg, "lower bound 4 us"), 1U);
  EXPECT_EQ(count(svg, "20.0 %"), 3U * 2);  // 1 us of 5: beside the timeline and in the topology
}

/// The page's data, as its script finds them.
Json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Html, IsWholeInItself) {
  const ProvenSchedule proven = test::line("</script><img src=x>");
  const std::string page = html_page({proven, {{0, 5}}});
  EXPECT_EQ(count(page, "<!--"), 0U) << "a slot is left";
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "</script>"), 2U);
  for (const char* outside : {"http:", "https:", "//cdn", "@import", "url("})
    EXPECT_EQ(count(page, outside), 0U) << outside;
  const Json data = data_of(page);
  EXPECT_EQ(data["nodes"][1], "</script><img src=x>");
  EXPECT_EQ(data["finish_us"], 5);
  EXPECT_EQ(data["bound_us"], 4);
  EXPECT_EQ(data["sends"]["complete"], true);
  EXPECT_EQ(data["sends"]["link"], "AAAAAAEAAAACAAAA");   // 0, 1, 2
  EXPECT_EQ(data["sends"]["start"], "AAAAAAAAAEAAAEBA");  // 0, 2, 3
  EXPECT_EQ(data["rounds"], Json::parse("[[0, 5]]"));
}

TEST(Html, HasSumsAndSharesWhereThereAreSome) {
  const Json plain = data_of(html_page({test::line()}));
  for (const char* name : {"share", "adds", "sources"}) EXPECT_FALSE(plain["sends"].contains(name)) << name;
  const std::string page = html_page({test::shared_sum()});
  const Json data = data_of(page);
  EXPECT_EQ(data["sends"]["share"], "//+AgP8=");            // 255, 255, 128, 128, 255
  EXPECT_EQ(data["sends"]["adds"], "AQEBAQA=");             // 1, 1, 1, 1, 0
  EXPECT_EQ(data["sends"]["sources"], "AQABAAEAAQADAA==");  // 1, 1, 1, 1, 3
  EXPECT_EQ(data["chunks"]["origin"], "AgAAAA==");
  EXPECT_NE(page.find("pale where it is added"), std::string::npos);
}

TEST(Html, OfHundredsOfGpusStaysSmall) {
  for (const auto& [family, values] : std::vector<std::pair<std::string, std::map<std::string, std::string>>>{
           {"rails", {{"boxes", "32"}}}, {"torus", {{"dims", "16x16"}}}, {"full", {{"gpus", "256"}}}}) {
    const int per_link = family == "full" ? 4 : 300;
    const ProvenSchedule proven = test::crowded(generate_topology(family, values), per_link);
    const std::string page = html_page({proven});
    EXPECT_LE(page.size(), 5'000'000U) << family;
    const Json data = data_of(page);
    EXPECT_LE(data["rows"].size(), 160U);
    EXPECT_EQ(data["sends"]["complete"], false);
    EXPECT_GT(data["sends"]["link"].get<std::string>().size(), 1000U) << family;
    EXPECT_TRUE(page.find("of some chunks are in this page") != std::string::npos);
  }
}

TEST(Words, TellResultAndCertificate) {
  ProvenSchedule proven = test::line();
  EXPECT_EQ(pictures::title_words(proven), "broadcast of 1 KB over 3 GPUs of line");
  EXPECT_EQ(
      pictures::result_words(proven),
      "The schedule ends after 5 us: an algorithm bandwidth of 0.2 GB/s, with 1 chunk of 1 KB in 3 sends. No "
      "schedule can end before 4 us, so it takes at most 25 % longer than the best.");
  EXPECT_NE(pictures::certificate_words(proven).find("Data of a is wanted at c."), std::string::npos);
  proven.lower_bound = LowerBound{5, CutCertificate{{NodeId(0)}, 1000}};
  EXPECT_NE(pictures::result_words(proven).find("No schedule can end earlier."), std::string::npos);
  EXPECT_EQ(
      pictures::certificate_words(proven),
      "a has to send 1 KB to the outside. One link of 1 GB/s leads there, which takes 1 us; with the latency "
      "before, on and after it is 5 us.");
  proven.lower_bound = LowerBound{5, MetricCertificate{{1, 0, 0, 0, 0, 0}}};
  EXPECT_NE(pictures::certificate_words(proven).find("the capacity of a → b."), std::string::npos);
  proven.lower_bound = LowerBound{5, PartitionCertificate{.part = {0, 1, 1, 1}, .enter = true}};
  EXPECT_NE(pictures::certificate_words(proven).find("into 2 sets as"), std::string::npos);
  EXPECT_NE(
      pictures::certificate_words(proven).find("2 KB have to enter sets, 2 times the buffer. 2 links of"),
      std::string::npos);
  proven.lower_bound = LowerBound{5, TimeCutCertificate{GpuId(2), {0, 3, 5, 0}}};
  EXPECT_NE(pictures::certificate_words(proven).find("the sources at first, c after 5 us."),
            std::string::npos);
  proven.lower_bound = LowerBound{5, PricesCertificate{{0, 1, 2}, 5, {0}, {1}}};
  EXPECT_NE(pictures::certificate_words(proven).find("prices for 3 periods."), std::string::npos);
  proven.lower_bound =
      LowerBound{5, JointCutsCertificate{{{0, 1, 2}, 5, {0}, {1}}, {{GpuId{0}, 1, {}}, {GpuId{0}, 2, {}}}}};
  EXPECT_NE(pictures::certificate_words(proven).find("For each of 1 GPU to have all it wants by 5 us"),
            std::string::npos);
  proven.lower_bound = LowerBound{5, MessagePricesCertificate{{{0, 1, 2}, 5, {0}, {1}}, 4, GpuId(2)}};
  EXPECT_NE(pictures::certificate_words(proven).find("the bytes of all that c wants have to pay"),
            std::string::npos);
  proven.lower_bound = LowerBound{5, KnowledgeCertificate{GpuId(2), {GpuId(0)}, {}, {0, 2, 5}}};
  EXPECT_NE(pictures::certificate_words(proven).find("before 5 us c cannot have all."), std::string::npos);
  proven.lower_bound.reset();
  EXPECT_NE(pictures::result_words(proven).find("No lower bound is known."), std::string::npos);
}

}  // namespace
}  // namespace rondo::test_pictures
