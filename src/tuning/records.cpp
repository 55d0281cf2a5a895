#include <fmt/format.h>

#include <map>

#include "rondo/core/error.hpp"
#include "rondo/io/json_object.hpp"
#include "rondo/tuning/tuner.hpp"

namespace rondo::tuning {
namespace {

constexpr const char* kTuningFormat = "rondo-tuning";
constexpr std::size_t kMostText = 1 << 16;

}  // namespace

Json to_json(const Space& space, const std::vector<Record>& records, const std::string& about) {
  Json all = Json::array();
  for (const Record& record : records) {
    Json json = {{"point", space.text(record.point)}, {"first_run", record.first_run}, {"runs", record.runs}};
    if (record.measured.failure.empty()) {
      json["time_us"] = record.measured.time_us;
    } else {
      json["failure"] = record.measured.failure;
    }
    all.push_back(std::move(json));
  }
  return {{"format", kTuningFormat},
          {"version", 1},
          {"about", about},
          {"space", space.to_json()},
          {"measurements", std::move(all)}};
}

std::vector<Record> records_from_json(const Json& json, const Space& space, const std::string& about) {
  const JsonObject object(json, "");
  object.check_keys({"format", "version", "about", "space", "measurements"});
  object.check_format(kTuningFormat);
  if (const std::string found = object.text("about", kMostText); found != about)
    object.refuse(fmt::format("it is of another tuning: {}; not of: {}", found, about));
  if (object.at("space") != space.to_json()) object.refuse("it is of another space");
  std::map<std::string, std::size_t> points;
  for (std::size_t i = 0; i < space.size(); ++i) points[space.text(i)] = i;
  std::vector<Record> records;
  object.for_each_object("measurements", [&](const JsonObject& entry, std::size_t) {
    entry.check_keys({"point", "first_run", "runs", "time_us", "failure"});
    const std::string point = entry.text("point", kMostText);
    const auto found = points.find(point);
    if (found == points.end()) entry.refuse(fmt::format("'{}' is no point of the space", point));
    Record record{found->second, static_cast<int>(entry.integer("first_run")),
                  static_cast<int>(entry.integer("runs", {1, 1'000'000}))};
    if (entry.has("failure")) {
      record.measured.failure = entry.text("failure", kMostText);
    } else {
      record.measured.time_us = entry.number("time_us");
      if (!(record.measured.time_us > 0)) entry.refuse("time_us has to be positive");
    }
    records.push_back(std::move(record));
  });
  return records;
}

}  // namespace rondo::tuning
