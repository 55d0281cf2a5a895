#include <fmt/format.h>

#include <utility>
#include <variant>

#include "json_object.hpp"
#include "overloaded.hpp"
#include "schedule_columns.hpp"
#include "topology_json.hpp"

namespace rondo {
namespace {

ChunkColumns read_chunks(const JsonObject& object) {
  object.check_keys({"origin", "destinations", "ready_us"});
  ChunkColumns chunks;
  chunks.origin = object.integers("origin");
  chunks.destinations_index = {0};
  const Json& destinations = object.array("destinations");
  for (std::size_t c = 0; c < destinations.size(); ++c) {
    const auto gpus = integers_of(destinations[c], element_place(object.place_of("destinations"), c));
    chunks.destinations_value.insert(chunks.destinations_value.end(), gpus.begin(), gpus.end());
    chunks.destinations_index.push_back(static_cast<std::int64_t>(chunks.destinations_value.size()));
  }
  if (object.has("ready_us")) chunks.ready_us = object.numbers("ready_us");
  return chunks;
}

SendColumns read_sends(const JsonObject& object) {
  object.check_keys({"chunk", "link", "start_us", "end_us", "arrival_us", "op"});
  return {.chunk = object.integers("chunk"),
          .link = object.integers("link"),
          .start_us = object.numbers("start_us"),
          .end_us = object.numbers("end_us"),
          .arrival_us = object.numbers("arrival_us"),
          .op = object.integers("op")};
}

Certificate read_certificate(const JsonObject& object) {
  const std::string kind = object.text("kind");
  if (kind == "latency") {
    object.check_keys({"kind", "source", "destination"});
    return LatencyCertificate{.source = GpuId(static_cast<std::int32_t>(object.integer("source"))),
                              .destination = GpuId(static_cast<std::int32_t>(object.integer("destination")))};
  }
  if (kind == "cut") {
    object.check_keys({"kind", "nodes", "bytes"});
    CutCertificate cut{.nodes = {}, .bytes = object.number("bytes")};
    for (const std::int64_t node : object.integers("nodes")) {
      cut.nodes.push_back(NodeId(static_cast<std::int32_t>(node)));
    }
    return cut;
  }
  if (kind == "metric") {
    object.check_keys({"kind", "length"});
    return MetricCertificate{.length = object.numbers("length")};
  }
  object.refuse(fmt::format("kind is '{}'; it has to be latency, cut or metric", kind));
}

LowerBound read_lower_bound(const JsonObject& object) {
  object.check_keys({"us", "certificate"});
  return {
      .us = object.number("us"),
      .certificate = read_certificate(JsonObject(object.at("certificate"), object.place_of("certificate")))};
}

Json certificate_to_json(const Certificate& certificate) {
  return std::visit(
      Overloaded{[](const LatencyCertificate& latency) {
                   return Json{{"kind", "latency"},
                               {"source", latency.source.value},
                               {"destination", latency.destination.value}};
                 },
                 [](const CutCertificate& cut) {
                   Json nodes = Json::array();
                   for (const NodeId n : cut.nodes) nodes.push_back(n.value);
                   return Json{{"kind", "cut"}, {"nodes", std::move(nodes)}, {"bytes", cut.bytes}};
                 },
                 [](const MetricCertificate& metric) {
                   return Json{{"kind", "metric"}, {"length", metric.length}};
                 },
                 [](const PartitionCertificate& partition) {
                   return Json{{"kind", "partition"},
                               {"part", partition.part},
                               {"side", partition.enter ? "enter" : "leave"}};
                 }},
      certificate);
}

Json chunks_to_json(const ChunkColumns& chunks) {
  Json destinations = Json::array();
  for (std::size_t c = 0; c < chunks.origin.size(); ++c) {
    const auto first = chunks.destinations_value.begin();
    destinations.push_back(std::vector<std::int64_t>(first + chunks.destinations_index[c],
                                                     first + chunks.destinations_index[c + 1]));
  }
  Json json = {{"origin", chunks.origin}, {"destinations", std::move(destinations)}};
  if (!chunks.ready_us.empty()) json["ready_us"] = chunks.ready_us;
  return json;
}

Json sends_to_json(const SendColumns& sends) {
  return {{"chunk", sends.chunk},           {"link", sends.link},
          {"start_us", sends.start_us},     {"end_us", sends.end_us},
          {"arrival_us", sends.arrival_us}, {"op", sends.op}};
}

}  // namespace

ProvenSchedule schedule_from_json(const Json& json) {
  const JsonObject object(json, "");
  object.check_format("rondo-schedule");
  object.check_keys({"format", "version", "producer", "topology", "collective", "size_bytes", "chunk_bytes",
                     "chunks", "sends", "finish_us", "algorithm_bandwidth_GBps", "lower_bound", "gap"});
  ScheduleColumns columns;
  columns.producer = object.text_or("producer", "");
  columns.collective = object.text("collective");
  columns.size_bytes = object.number("size_bytes");
  columns.uniform_chunk_bytes = !object.at("chunk_bytes").is_array();
  columns.chunk_bytes = columns.uniform_chunk_bytes ? std::vector<double>{object.number("chunk_bytes")}
                                                    : object.numbers("chunk_bytes");
  columns.chunks = read_chunks(JsonObject(object.at("chunks"), "chunks"));
  columns.sends = read_sends(JsonObject(object.at("sends"), "sends"));
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
  Json json = {{"format", "rondo-schedule"},       {"version", 1},
               {"producer", columns.producer},     {"topology", topology_to_json(proven.topology)},
               {"collective", columns.collective}, {"size_bytes", columns.size_bytes}};
  json["chunk_bytes"] =
      columns.uniform_chunk_bytes ? Json(columns.chunk_bytes.front()) : Json(columns.chunk_bytes);
  json["chunks"] = chunks_to_json(columns.chunks);
  json["sends"] = sends_to_json(columns.sends);
  json["finish_us"] = columns.finish_us;
  json["algorithm_bandwidth_GBps"] = *columns.algorithm_bandwidth_GBps;
  if (columns.lower_bound) {
    json["lower_bound"] = {{"us", columns.lower_bound->us},
                           {"certificate", certificate_to_json(columns.lower_bound->certificate)}};
    json["gap"] = *columns.gap;
  }
  return json;
}

}  // namespace rondo
