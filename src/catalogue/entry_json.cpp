#include "entry_json.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "rondo/core/error.hpp"
#include "rondo/io/bound_files.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo::catalogue {
namespace {

constexpr const char* kCellFormat = "rondo-catalogue-cell";
constexpr const char* kBinsFormat = "rondo-catalogue-bins";
constexpr std::size_t kMostText = 4096;

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::optional<double> read_optional(const JsonObject& object, const char* key) {
  if (object.at(key).is_null()) return std::nullopt;
  return object.number(key);
}

double positive(const JsonObject& object, const char* key) {
  const double value = object.number(key);
  if (!(value > 0) || !std::isfinite(value))
    object.refuse(fmt::format("{} is {}; it has to be positive and finite", key, value));
  return value;
}

Way read_way(const JsonObject& object) {
  const std::string word = object.text("way");
  for (const Way way : {Way::solved, Way::adapted, Way::replayed, Way::refused}) {
    if (word == to_string(way)) return way;
  }
  object.refuse(fmt::format("way is '{}'; it is solved, adapted, replayed or refused", word));
}

Json border_to_json(const Border& border) {
  return {{"below_bytes", border.below_bytes},
          {"below_us", border.below_us},
          {"below_other_us", border.below_other_us},
          {"above_bytes", border.above_bytes},
          {"above_us", border.above_us},
          {"above_other_us", border.above_other_us}};
}

Border read_border(const JsonObject& object) {
  object.check_keys(
      {"below_bytes", "below_us", "below_other_us", "above_bytes", "above_us", "above_other_us"});
  const Border border{positive(object, "below_bytes"),    positive(object, "below_us"),
                      positive(object, "below_other_us"), positive(object, "above_bytes"),
                      positive(object, "above_us"),       positive(object, "above_other_us")};
  const bool is_proof = border.below_bytes < border.above_bytes && border.below_us <= border.below_other_us &&
                        border.above_us <= border.above_other_us;
  if (!is_proof) object.refuse("it does not separate two bins: each has to be no later on its own side");
  return border;
}

void check_cover(const std::vector<Bin>& bins, const JsonObject& object) {
  double from = 0;
  for (const Bin& bin : bins) {
    if (bin.from_bytes != from || !(bin.to_bytes > from))
      object.refuse(fmt::format("bins leave out or repeat sizes from {} bytes on", from));
    from = bin.to_bytes;
  }
  if (!bins.empty() && std::isfinite(from)) object.refuse(fmt::format("bins end at {} bytes", from));
}

constexpr std::size_t kMostValues = 4096;

double time_of(const JsonObject& object, const char* key) {
  const double value = object.number(key);
  if (!(value > 0) || !std::isfinite(value))
    object.refuse(fmt::format("{} is {}; it has to be positive and finite", key, value));
  return value;
}

TunedSize read_size(const JsonObject& object) {
  object.check_keys({"size_bytes", "objective", "configurations"});
  TunedSize tuned{time_of(object, "size_bytes"), object.text("objective", kMostValues)};
  object.for_each_object("configurations", [&](const JsonObject& entry, std::size_t) {
    entry.check_keys({"values", "recent_us", "calls"});
    tuned.configurations.push_back({entry.text("values", kMostValues), time_of(entry, "recent_us"),
                                    entry.integer("calls", {0, std::numeric_limits<std::int64_t>::max()})});
  });
  if (tuned.configurations.empty()) object.refuse("configurations is empty");
  return tuned;
}

}  // namespace

Json series_to_json(const Series& series) {
  Json group = Json::array();
  for (const GpuId gpu : series.group) group.push_back(gpu.value);
  return {{"fabric", series.fabric},
          {"collective", to_string(series.collective)},
          {"root", series.root.value},
          {"group", std::move(group)},
          {"relays", series.relays}};
}

Series read_series(const JsonObject& object) {
  object.check_keys({"fabric", "collective", "root", "group", "relays"});
  Series series{.fabric = object.text("fabric")};
  const std::string name = object.text("collective");
  const auto collective = find_collective(name);
  if (!collective || *collective == Collective::custom)
    object.refuse(fmt::format("collective is '{}', which is no named collective", name));
  series.collective = *collective;
  series.root = GpuId(static_cast<std::int32_t>(object.integer("root")));
  for (const std::int64_t gpu : object.integers("group"))
    series.group.emplace_back(static_cast<std::int32_t>(gpu));
  series.relays = object.flag_or("relays", true);
  return series;
}

Json to_json(const Series& series, const Cell& cell) {
  Json json = {{"format", kCellFormat},
               {"version", 1},
               {"series", series_to_json(series)},
               {"size_bytes", cell.size_bytes},
               {"way", to_string(cell.way)},
               {"settings", cell.settings},
               {"producer", cell.producer},
               {"wall_s", cell.wall_s}};
  if (cell.is_refused()) {
    json["refusal"] = cell.refusal;
    return json;
  }
  json["schedule"] = cell.schedule;
  json["finish_us"] = cell.finish_us;
  json["lower_bound"] = lower_bound_to_json(*cell.bound);
  json["gap"] = cell.gap();
  json["digest"] = cell.digest;
  json["engine"] = cell.engine;
  json["seed"] = cell.seed;
  json["made_from"] = cell.made_from;
  if (!cell.sketch.empty()) json["sketch"] = cell.sketch;
  json["loss_of_smaller"] = optional_number(cell.loss_of_smaller);
  json["loss_of_larger"] = optional_number(cell.loss_of_larger);
  return json;
}

ReadCell read_cell(const Json& json) {
  const JsonObject object(json, "");
  object.check_keys({"format",    "version",     "series", "size_bytes",      "way",
                     "settings",  "producer",    "wall_s", "refusal",         "schedule",
                     "finish_us", "lower_bound", "gap",    "digest",          "engine",
                     "seed",      "made_from",   "sketch", "loss_of_smaller", "loss_of_larger"});
  object.check_format(kCellFormat);
  ReadCell read{read_series(JsonObject(object.at("series"), "series")), {}};
  Cell& cell = read.cell;
  cell.size_bytes = positive(object, "size_bytes");
  cell.way = read_way(object);
  cell.settings = object.text("settings", kMostText);
  cell.producer = object.text("producer");
  cell.wall_s = object.number("wall_s");
  if (cell.is_refused()) {
    cell.refusal = object.text("refusal", kMostText);
    return read;
  }
  cell.schedule = object.text("schedule");
  cell.finish_us = positive(object, "finish_us");
  cell.bound = lower_bound_from_json(object.at("lower_bound"), "lower_bound");
  cell.digest = object.text("digest");
  cell.engine = object.text("engine", kMostText);
  cell.seed =
      static_cast<std::uint64_t>(object.integer("seed", {0, std::numeric_limits<std::int64_t>::max()}));
  cell.made_from = object.text("made_from");
  if (object.has("sketch")) cell.sketch = object.text("sketch", kMostText);
  cell.loss_of_smaller = read_optional(object, "loss_of_smaller");
  cell.loss_of_larger = read_optional(object, "loss_of_larger");
  return read;
}

Json to_json(const Series& series, const Table& table) {
  Json best = Json::array();
  for (const Cell& cell : table.cells) {
    if (cell.is_refused()) continue;
    best.push_back({{"size_bytes", cell.size_bytes},
                    {"way", to_string(cell.way)},
                    {"schedule", cell.schedule},
                    {"finish_us", cell.finish_us},
                    {"digest", cell.digest}});
  }
  Json bins = Json::array();
  for (const Bin& bin : table.bins) {
    bins.push_back({{"from_bytes", bin.from_bytes},
                    {"to_bytes", std::isfinite(bin.to_bytes) ? Json(bin.to_bytes) : Json()},
                    {"schedule", bin.schedule},
                    {"border", bin.border ? border_to_json(*bin.border) : Json()}});
  }
  return {{"format", kBinsFormat},
          {"version", 1},
          {"series", series_to_json(series)},
          {"cells", std::move(best)},
          {"bins", std::move(bins)}};
}

std::vector<TunedSize> tuned_from_json(const Json& json, const Series& series) {
  const JsonObject object(json, "");
  object.check_keys({"format", "version", "series", "sizes"});
  object.check_format(kTunedFormat);
  if (read_series(JsonObject(object.at("series"), "series")) != series)
    object.refuse("it is of another series than its name says");
  std::vector<TunedSize> all;
  object.for_each_object("sizes", [&](const JsonObject& size, std::size_t) {
    all.push_back(read_size(size));
    if (all.size() > 1 && all[all.size() - 2].size_bytes >= all.back().size_bytes)
      size.refuse("sizes do not ascend");
  });
  return all;
}

void read_bins(const Json& json, Table& table) {
  const JsonObject object(json, "");
  object.check_keys({"format", "version", "series", "cells", "bins"});
  object.check_format(kBinsFormat);
  if (read_series(JsonObject(object.at("series"), "series")) != table.series)
    object.refuse("it is of another series than the folder that it lies in");
  struct MadeBy {
    std::string engine;
    std::uint64_t seed;
    std::string sketch;
  };
  std::map<std::string, MadeBy> made;  // by schedule; cells may hold large certificates
  for (const Cell& cell : table.cells)
    made.try_emplace(cell.schedule, MadeBy{cell.engine, cell.seed, cell.sketch});
  std::size_t next = 0;
  object.for_each_object("cells", [&](const JsonObject& best, std::size_t) {
    best.check_keys({"size_bytes", "way", "schedule", "finish_us", "digest"});
    while (next < table.cells.size() && table.cells[next].is_refused()) ++next;
    const double size_bytes = positive(best, "size_bytes");
    if (next == table.cells.size() || table.cells[next].size_bytes != size_bytes)
      best.refuse(fmt::format("there is no cell of {} bytes in its place", size_bytes));
    Cell& cell = table.cells[next++];
    cell.way = read_way(best);
    cell.schedule = best.text("schedule");
    cell.finish_us = positive(best, "finish_us");
    cell.digest = best.text("digest");
    const auto by = made.find(cell.schedule);
    if (by == made.end()) best.refuse(fmt::format("schedule is {}, which no cell has", cell.schedule));
    cell.engine = by->second.engine;
    cell.seed = by->second.seed;
    cell.sketch = by->second.sketch;
  });
  while (next < table.cells.size() && table.cells[next].is_refused()) ++next;
  if (next != table.cells.size())
    object.refuse(fmt::format("the cell of {} bytes is not in it", table.cells[next].size_bytes));
  table.bins.clear();
  object.for_each_object("bins", [&](const JsonObject& bin, std::size_t) {
    bin.check_keys({"from_bytes", "to_bytes", "schedule", "border"});
    Bin read{.from_bytes = bin.number("from_bytes"), .schedule = bin.text("schedule")};
    if (!bin.at("to_bytes").is_null()) read.to_bytes = bin.number("to_bytes");
    if (!bin.at("border").is_null())
      read.border = read_border(JsonObject(bin.at("border"), bin.place_of("border")));
    table.bins.push_back(std::move(read));
  });
  check_cover(table.bins, object);
}

}  // namespace rondo::catalogue
