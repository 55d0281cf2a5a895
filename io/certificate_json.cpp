#include "certificate_json.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "metric_columns.hpp"
#include "overloaded.hpp"
#include "ragged_columns.hpp"

namespace rondo {
namespace {

MetricCertificate read_metric(const JsonObject& object) {
  object.check_keys({"kind", "length", "from_us", "data", "shares"});
  MetricColumns columns{.length = object.numbers("length")};
  if (object.has("from_us")) columns.from_us = object.numbers("from_us");
  if (object.has("data")) {
    object.for_each_object("data", [&](const JsonObject& datum, std::size_t) {
      datum.check_keys({"source", "destinations"});
      columns.source.push_back(datum.integer("source"));
      columns.destinations.add_row(datum.integers("destinations"));
    });
  }
  if (object.has("shares")) {
    const JsonObject shares(object.at("shares"), object.place_of("shares"));
    shares.check_keys({"datum", "destination", "place", "length"});
    columns.datum = shares.integers("datum");
    columns.destination = shares.integers("destination");
    columns.place = shares.integers("place");
    columns.share = shares.numbers("length");
  }
  return to_metric(columns);
}

Json metric_to_json(const MetricCertificate& metric) {
  const MetricColumns columns = columns_of(metric);
  Json json{{"kind", "metric"}, {"length", columns.length}};
  if (columns.from_us.empty()) return json;
  json["from_us"] = columns.from_us;
  Json data = Json::array();
  for (std::size_t d = 0; d < columns.source.size(); ++d)
    data.push_back(
        {{"source", columns.source[d]}, {"destinations", list_to_json(columns.destinations.row(d))}});
  json["data"] = std::move(data);
  json["shares"] = {{"datum", columns.datum},
                    {"destination", columns.destination},
                    {"place", columns.place},
                    {"length", columns.share}};
  return json;
}

template <class Id>
std::vector<Id> to_ids(const std::vector<std::int64_t>& numbers) {
  std::vector<Id> ids;
  for (const std::int64_t number : numbers) ids.emplace_back(static_cast<std::int32_t>(number));
  return ids;
}

KnowledgeCertificate read_knowledge(const JsonObject& object) {
  const bool backwards = object.has("source");
  const char* gpu = backwards ? "source" : "destination";
  const char* others = backwards ? "destinations" : "sources";
  object.check_keys({"kind", gpu, others, "sets", "times_us"});
  KnowledgeCertificate knowledge{.gpu = GpuId(static_cast<std::int32_t>(object.integer(gpu))),
                                 .sources = to_ids<GpuId>(object.integers(others)),
                                 .sets = {},
                                 .times_us = object.numbers("times_us"),
                                 .backwards = backwards};
  const RaggedColumn sets = read_lists(object, "sets");
  for (std::size_t i = 0; i + 1 < sets.index.size(); ++i) {
    const auto row = sets.row(i);
    knowledge.sets.push_back(to_ids<NodeId>({row.begin(), row.end()}));
  }
  return knowledge;
}

Json gpus_to_json(const std::vector<GpuId>& gpus) {
  Json numbers = Json::array();
  for (const GpuId g : gpus) numbers.push_back(g.value);
  return numbers;
}

TimeCutCertificate read_time_cut(const JsonObject& object) {
  const bool backwards = object.has("source");
  const char* gpu = backwards ? "source" : "destination";
  TimeCutCertificate cut{.gpu = GpuId(static_cast<std::int32_t>(object.integer(gpu))),
                         .alpha_us = object.numbers("alpha_us"),
                         .backwards = backwards};
  const bool counts = !backwards && object.has("sources");
  if (counts) {
    cut.sources = to_ids<GpuId>(object.integers("sources"));
    if (cut.sources.empty()) object.refuse("sources has to name a GPU where it is given");
  }
  object.check_keys({"kind", gpu, "alpha_us", counts ? "sources" : gpu});
  return cut;
}

Json time_cut_to_json(const TimeCutCertificate& cut) {
  Json json{{"kind", "time_cut"},
            {cut.backwards ? "source" : "destination", cut.gpu.value},
            {"alpha_us", cut.alpha_us}};
  if (!cut.sources.empty()) json["sources"] = gpus_to_json(cut.sources);
  return json;
}

Json knowledge_to_json(const KnowledgeCertificate& knowledge) {
  Json sets = Json::array();
  for (const std::vector<NodeId>& set : knowledge.sets) {
    Json nodes = Json::array();
    for (const NodeId n : set) nodes.push_back(n.value);
    sets.push_back(std::move(nodes));
  }
  return Json{{"kind", "knowledge"},
              {knowledge.backwards ? "source" : "destination", knowledge.gpu.value},
              {knowledge.backwards ? "destinations" : "sources", gpus_to_json(knowledge.sources)},
              {"sets", std::move(sets)},
              {"times_us", knowledge.times_us}};
}

PricesCertificate read_prices(const JsonObject& object) {
  PricesCertificate prices{.from_us = object.numbers("from_us"),
                           .until_us = object.number("until_us"),
                           .place = {},
                           .price = object.numbers("price")};
  for (const std::int64_t place : object.integers("place"))
    prices.place.push_back(static_cast<std::int32_t>(place));
  return prices;
}

Json prices_to_json(const char* kind, const PricesCertificate& prices) {
  return Json{{"kind", kind},
              {"until_us", prices.until_us},
              {"from_us", prices.from_us},
              {"place", prices.place},
              {"price", prices.price}};
}

JointCutsCertificate read_joint_cuts(const JsonObject& object) {
  object.check_keys({"kind", "from_us", "until_us", "place", "price", "cuts"});
  JointCutsCertificate joint{.prices = read_prices(object), .cuts = {}};
  object.for_each_object("cuts", [&](const JsonObject& cut, std::size_t) {
    const bool backwards = cut.has("source");
    const char* gpu = backwards ? "source" : "destination";
    cut.check_keys({gpu, "weight", "alpha_us"});
    if (joint.cuts.empty()) joint.backwards = backwards;
    if (joint.backwards != backwards) cut.refuse("the cuts are all of destinations or all of sources");
    joint.cuts.push_back({.gpu = GpuId(static_cast<std::int32_t>(cut.integer(gpu))),
                          .weight = cut.number("weight"),
                          .alpha_us = cut.numbers("alpha_us")});
  });
  return joint;
}

MessagePricesCertificate read_message_prices(const JsonObject& object) {
  const bool backwards = object.has("source");
  const char* gpu = backwards ? "source" : "destination";
  object.check_keys({"kind", gpu, "from_us", "until_us", "place", "price", "parts"});
  return {.prices = read_prices(object),
          .parts = static_cast<int>(object.integer("parts")),
          .gpu = GpuId(static_cast<std::int32_t>(object.integer(gpu, {.least = -1}))),
          .backwards = backwards};
}

Json message_prices_to_json(const MessagePricesCertificate& messages) {
  Json json = prices_to_json("message_prices", messages.prices);
  json["parts"] = messages.parts;
  json[messages.backwards ? "source" : "destination"] = messages.gpu.value;
  return json;
}

Json joint_cuts_to_json(const JointCutsCertificate& joint) {
  Json json = prices_to_json("joint_cuts", joint.prices);
  json["cuts"] = Json::array();
  for (const WeightedTimeCut& cut : joint.cuts) {
    json["cuts"].push_back({{joint.backwards ? "source" : "destination", cut.gpu.value},
                            {"weight", cut.weight},
                            {"alpha_us", cut.alpha_us}});
  }
  return json;
}

}  // namespace

Certificate read_certificate(const JsonObject& object) {
  const std::string kind = object.text("kind");
  if (kind == "latency") {
    object.check_keys({"kind", "source", "destination"});
    return LatencyCertificate{.source = GpuId(static_cast<std::int32_t>(object.integer("source"))),
                              .destination = GpuId(static_cast<std::int32_t>(object.integer("destination")))};
  }
  if (kind == "cut") {
    object.check_keys({"kind", "nodes", "bytes"});
    return CutCertificate{.nodes = to_ids<NodeId>(object.integers("nodes")), .bytes = object.number("bytes")};
  }
  if (kind == "metric") return read_metric(object);
  if (kind == "partition") {
    object.check_keys({"kind", "part", "side"});
    PartitionCertificate partition;
    for (const std::int64_t part : object.integers("part", {.least = -1}))
      partition.part.push_back(static_cast<int>(part));
    const std::string side = object.text("side");
    if (side != "enter" && side != "leave")
      object.refuse(fmt::format("side is '{}'; it has to be enter or leave", side));
    partition.enter = side == "enter";
    return partition;
  }
  if (kind == "time_cut") return read_time_cut(object);
  if (kind == "prices") {
    object.check_keys({"kind", "from_us", "until_us", "place", "price"});
    return read_prices(object);
  }
  if (kind == "knowledge") return read_knowledge(object);
  if (kind == "joint_cuts") return read_joint_cuts(object);
  if (kind == "message_prices") return read_message_prices(object);
  object.refuse(
      fmt::format("kind is '{}'; it has to be latency, cut, metric, partition, time_cut, prices, knowledge, "
                  "joint_cuts or message_prices",
                  kind));
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
                 [](const MetricCertificate& metric) { return metric_to_json(metric); },
                 [](const PartitionCertificate& partition) {
                   return Json{{"kind", "partition"},
                               {"part", partition.part},
                               {"side", partition.enter ? "enter" : "leave"}};
                 },
                 [](const TimeCutCertificate& cut) { return time_cut_to_json(cut); },
                 [](const PricesCertificate& prices) { return prices_to_json("prices", prices); },
                 [](const KnowledgeCertificate& knowledge) { return knowledge_to_json(knowledge); },
                 [](const JointCutsCertificate& joint) { return joint_cuts_to_json(joint); },
                 [](const MessagePricesCertificate& messages) { return message_prices_to_json(messages); }},
      certificate);
}

}  // namespace rondo
