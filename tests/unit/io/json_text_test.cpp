#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "expect_error.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::json_text_test {
namespace {

void expect_bad(const std::string& text, std::initializer_list<std::string> fragments) {
  SCOPED_TRACE(text.substr(0, 80));
  expect_error(ExitCode::bad_data, fragments, [&] { parse_json(text, "fabric.json"); });
}

TEST(ParseJson, KeepsValuesAndOrder) {
  const Json json = parse_json(R"({"b": [1, -2, 2.5, "x", true, null], "a": {}})", "fabric.json");
  EXPECT_EQ(json.dump(), R"({"b":[1,-2,2.5,"x",true,null],"a":{}})");
}

TEST(ParseJson, NamesFileLineAndColumn) {
  expect_bad("{\n \"a\": 1,\n \"b\": nope\n}", {"fabric.json: line 3, column", "invalid JSON at 'nope'"});
  expect_bad("{\"a\" 1}", {"line 1, column 6", "invalid JSON at '1'"});
}

TEST(ParseJson, RefusesTruncatedText) {
  const std::string whole = "{\n \"nodes\": [{\"id\": 0, \"name\": \"c0\"}, {\"id\": 1}]\n}";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_bad(whole.substr(0, length), {"fabric.json: line"});
  }
  expect_bad("{\n \"nodes\": [", {"line 2, column", "truncated"});
}

TEST(ParseJson, RefusesTextAfterTheDocument) {
  expect_bad("{} {}", {"line 1, column 4"});
}

TEST(ParseJson, RefusesNumbersThatNoDoubleHolds) {
  expect_bad("{\"bandwidth_GBps\": 1e400}", {"line 1, column", "1e400", "double"});
  expect_bad("{\"bandwidth_GBps\": -1e400}", {"-1e400"});
  expect_bad("{\"bandwidth_GBps\": NaN}", {"'NaN'"});
  expect_bad("{\"bandwidth_GBps\": Infinity}", {"'Infinity'"});
}

TEST(ParseJson, RefusesRepeatedKeys) {
  expect_bad(R"({"a": 1, "a": 2})", {"key 'a' stands twice in the top level"});
  expect_bad(R"({"links": [{}, {"src": 0, "dst": 1, "src": 1}]})", {"key 'src' stands twice in links[1]"});
}

TEST(ParseJson, RefusesDeepNesting) {
  expect_bad(std::string(100'000, '['), {"nested deeper than"});
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  expect_bad(objects, {"nested deeper than"});
}

TEST(ParseJson, RefusesObjectsOfVeryManyKeys) {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 2'000; ++i) text += ", \"k" + std::to_string(i) + "\": 0";
  expect_bad(text + "}", {"more than 1000 keys"});
}

TEST(ParseJson, RefusesBytesThatAreNoUtf8) {
  expect_bad("{\"name\": \"\xff\"}", {"line 1, column"});
}

TEST(FormatJson, PutsLeavesOnOneLine) {
  const Json json = {{"name", "x"}, {"nodes", {{{"id", 0}}, {{"id", 1}}}}, {"empty", Json::array()}};
  EXPECT_EQ(format_json(json),
            "{\n \"name\": \"x\",\n \"nodes\": [\n  {\"id\":0},\n  {\"id\":1}\n ],\n \"empty\": []\n}\n");
  EXPECT_EQ(parse_json(format_json(json), "x"), json);
}

TEST(FormatJson, KeepsEveryBitOfNumbers) {
  for (const double value : {0.1, 1.0 / 3, 12.5, 1e-300, 123456789.123456789, 1e22, -0.0,
                             std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()}) {
    const auto back = parse_json(format_json(Json{{"v", value}}), "x")["v"].get<double>();
    EXPECT_EQ(back, value);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
    EXPECT_EQ(std::stod(format_number(value)), value);
  }
  EXPECT_EQ(format_number(12.5), "12.5");
  EXPECT_EQ(format_number(0.1), "0.1");
}

}  // namespace
}  // namespace rondo::json_text_test
