#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "certificate_json.hpp"
#include "column_checks.hpp"
#include "ragged_columns.hpp"
#include "rondo/io/bound_files.hpp"
#include "rondo/io/json_object.hpp"
#include "schedule_columns.hpp"
#include "topology_json.hpp"

namespace rondo {
namespace {

/// Lists of the same lengths as those of `sources`.
void read_source_times(const JsonObject& object, ChunkColumns& chunks) {
  const Json& lists = object.array("sources_ready_us");
  const std::string place = object.place_of("sources_ready_us");
  if (chunks.sources.is_absent()) object.refuse("'sources_ready_us' needs 'sources'");
  check_length(place.c_str(), lists.size(), chunks.sources.index.size() - 1, "chunks.sources");
  for (std::size_t c = 0; c < lists.size(); ++c) {
    const auto times = numbers_of(lists[c], element_place(place, c));
    check_length(element_place(place, c).c_str(), times.size(), chunks.sources.row(c).size(),
                 "chunks.sources there");
    chunks.sources_ready_us.insert(chunks.sources_ready_us.end(), times.begin(), times.end());
  }
}

HeldColumns read_held(const JsonObject& object) {
  HeldColumns held;
  object.for_each_object("held", [&](const JsonObject& sum, std::size_t) {
    sum.check_keys({"chunk", "gpu", "sources"});
    held.chunk.push_back(sum.integer("chunk"));
    held.gpu.push_back(sum.integer("gpu"));
    held.sources.add_row(sum.integers("sources"));
  });
  return held;
}

ChunkColumns read_chunks(const JsonObject& object, int version) {
  object.check_keys({"origin", "destinations", "ready_us", "sources", "sources_ready_us", "reduce", "held",
                     "tenant", "priority"});
  object.check_version(version, {"sources", "sources_ready_us", "reduce", "held", "tenant", "priority"});
  ChunkColumns chunks;
  chunks.origin = object.integers("origin");
  chunks.destinations = read_lists(object, "destinations");
  if (object.has("ready_us")) chunks.ready_us = object.numbers("ready_us");
  if (object.has("sources")) chunks.sources = read_lists(object, "sources");
  if (object.has("sources_ready_us")) read_source_times(object, chunks);
  if (object.has("reduce")) chunks.reduce = object.integers("reduce");
  if (object.has("held")) chunks.held = read_held(object);
  if (object.has("tenant")) chunks.tenant = object.integers("tenant");
  if (object.has("priority")) chunks.priority = object.numbers("priority");
  return chunks;
}

SendColumns read_sends(const JsonObject& object, int version) {
  object.check_keys({"chunk", "link", "start_us", "end_us", "arrival_us", "op", "transfer", "rate_GBps"});
  object.check_version(version, {"transfer", "rate_GBps"});
  SendColumns sends{.chunk = object.integers("chunk"),
                    .link = object.integers("link"),
                    .start_us = object.numbers("start_us"),
                    .end_us = object.numbers("end_us"),
                    .arrival_us = object.numbers("arrival_us"),
                    .op = object.integers("op")};
  if (object.has("transfer")) sends.transfer = object.integers("transfer", {.least = kNoTransfer});
  if (object.has("rate_GBps")) sends.rate_GBps = object.numbers_or_null("rate_GBps");
  return sends;
}

LowerBound read_lower_bound(const JsonObject& object) {
  object.check_keys({"us", "certificate"});
  return {
      .us = object.number("us"),
      .certificate = read_certificate(JsonObject(object.at("certificate"), object.place_of("certificate")))};
}

Json held_to_json(const HeldColumns& held) {
  Json json = Json::array();
  for (std::size_t h = 0; h < held.chunk.size(); ++h) {
    json.push_back(
        {{"chunk", held.chunk[h]}, {"gpu", held.gpu[h]}, {"sources", list_to_json(held.sources.row(h))}});
  }
  return json;
}

Json chunks_to_json(const ChunkColumns& chunks) {
  Json json = {{"origin", chunks.origin}, {"destinations", lists_to_json(chunks.destinations)}};
  if (!chunks.ready_us.empty()) json["ready_us"] = chunks.ready_us;
  if (!chunks.sources.is_absent()) json["sources"] = lists_to_json(chunks.sources);
  for (std::size_t c = 0; !chunks.sources_ready_us.empty() && c < chunks.origin.size(); ++c) {
    const auto first = chunks.sources_ready_us.begin();
    json["sources_ready_us"].push_back(std::vector<double>(first + chunks.sources.index[c],  //
                                                           first + chunks.sources.index[c + 1]));
  }
  if (!chunks.reduce.empty()) json["reduce"] = chunks.reduce;
  if (!chunks.tenant.empty()) json["tenant"] = chunks.tenant;
  if (!chunks.priority.empty()) json["priority"] = chunks.priority;
  if (!chunks.held.chunk.empty()) json["held"] = held_to_json(chunks.held);
  return json;
}

Json sends_to_json(const SendColumns& sends) {
  Json json = {{"chunk", sends.chunk},           {"link", sends.link},
               {"start_us", sends.start_us},     {"end_us", sends.end_us},
               {"arrival_us", sends.arrival_us}, {"op", sends.op}};
  if (!sends.transfer.empty()) json["transfer"] = sends.transfer;
  for (const double rate : sends.rate_GBps)
    json["rate_GBps"].push_back(std::isnan(rate) ? Json() : Json(rate));
  return json;
}

}  // namespace

Json lower_bound_to_json(const LowerBound& bound) {
  return {{"us", bound.us}, {"certificate", certificate_to_json(bound.certificate)}};
}

LowerBound lower_bound_from_json(const Json& json, const std::string& place) {
  return read_lower_bound(JsonObject(json, place));
}

ProvenSchedule schedule_from_json(const Json& json) {
  const JsonObject object(json, "");
  const int version = object.check_format("rondo-schedule");
  object.check_keys({"format", "version", "producer", "topology", "collective", "size_bytes", "group",
                     "counts", "relay", "chunk_bytes", "chunks", "sends", "finish_us",
                     "algorithm_bandwidth_GBps", "lower_bound", "gap"});
  ScheduleColumns columns;
  columns.producer = object.text_or("producer", "");
  columns.collective = object.text("collective");
  columns.size_bytes = object.number("size_bytes");
  object.check_version(version, {"group", "counts", "relay"});
  columns.shape = read_shape(json);
  columns.uniform_chunk_bytes = !object.at("chunk_bytes").is_array();
  columns.chunk_bytes = columns.uniform_chunk_bytes ? std::vector<double>{object.number("chunk_bytes")}
                                                    : object.numbers("chunk_bytes");
  columns.chunks = read_chunks(JsonObject(object.at("chunks"), "chunks"), version);
  columns.sends = read_sends(JsonObject(object.at("sends"), "sends"), version);
  columns.finish_us = object.number("finish_us");
  if (object.has("algorithm_bandwidth_GBps")) {
    columns.algorithm_bandwidth_GBps = object.number("algorithm_bandwidth_GBps");
  }
  if (object.has("lower_bound")) {
    columns.lower_bound = read_lower_bound(JsonObject(object.at("lower_bound"), "lower_bound"));
  }
  if (object.has("gap")) columns.gap = object.number("gap");
  return to_proven_schedule(read_topology(object.at("topology"), "topology"), columns);
}

Json schedule_to_json(const ProvenSchedule& proven) {
  const ScheduleColumns columns = to_columns(proven);
  Json json = {{"format", "rondo-schedule"},       {"version", columns.version},
               {"producer", columns.producer},     {"topology", topology_to_json(proven.topology)},
               {"collective", columns.collective}, {"size_bytes", columns.size_bytes}};
  write_shape(json, columns.shape);
  json["chunk_bytes"] =
      columns.uniform_chunk_bytes ? Json(columns.chunk_bytes.front()) : Json(columns.chunk_bytes);
  json["chunks"] = chunks_to_json(columns.chunks);
  json["sends"] = sends_to_json(columns.sends);
  json["finish_us"] = columns.finish_us;
  json["algorithm_bandwidth_GBps"] = *columns.algorithm_bandwidth_GBps;
  if (columns.lower_bound) {
    json["lower_bound"] = lower_bound_to_json(*columns.lower_bound);
    json["gap"] = *columns.gap;
  }
  return json;
}

}  // namespace rondo
