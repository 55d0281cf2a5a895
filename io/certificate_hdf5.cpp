#include "certificate_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "column_checks.hpp"
#include "hdf5_ids.hpp"
#include "metric_columns.hpp"
#include "overloaded.hpp"
#include "ragged_columns.hpp"

namespace rondo {
namespace {

void write_metric(const Hdf5GroupWriter& group, const MetricCertificate& metric) {
  const MetricColumns columns = columns_of(metric);
  group.put_array("length", columns.length, "");
  if (columns.from_us.empty()) return;
  group.put_array("from_us", columns.from_us, "us");
  group.put_array("data_source", columns.source, H5T_STD_I32LE);
  write_ragged(group, "data_destinations", columns.destinations);
  group.put_array("shares_datum", columns.datum, H5T_STD_I32LE);
  group.put_array("shares_destination", columns.destination, H5T_STD_I32LE);
  group.put_array("shares_place", columns.place, H5T_STD_I32LE);
  group.put_array("shares_length", columns.share, "");
}

std::vector<std::int64_t> numbers_of(const std::vector<GpuId>& gpus) {
  std::vector<std::int64_t> numbers;
  for (const GpuId g : gpus) numbers.push_back(g.value);
  return numbers;
}

void write_knowledge(const Hdf5GroupWriter& group, const KnowledgeCertificate& knowledge) {
  group.put(knowledge.backwards ? "source" : "destination", std::int64_t{knowledge.gpu.value});
  group.put_array(knowledge.backwards ? "destinations" : "sources", numbers_of(knowledge.sources),
                  H5T_STD_I32LE);
  RaggedColumn sets{.index = {0}};
  for (const std::vector<NodeId>& set : knowledge.sets) {
    std::vector<std::int64_t> row;
    for (const NodeId n : set) row.push_back(n.value);
    sets.add_row(row);
  }
  write_ragged(group, "sets", sets);
  group.put_array("times_us", knowledge.times_us, "us");
}

void write_prices(const Hdf5GroupWriter& group, const PricesCertificate& prices) {
  group.put("until_us", prices.until_us);
  group.put_array("from_us", prices.from_us, "us");
  group.put_array("place", std::vector<std::int64_t>(prices.place.begin(), prices.place.end()),
                  H5T_STD_I32LE);
  group.put_array("price", prices.price, "");
}

void write_joint_cuts(const Hdf5GroupWriter& group, const JointCutsCertificate& joint) {
  write_prices(group, joint.prices);
  std::vector<std::int64_t> gpus;
  std::vector<double> weights;
  std::vector<double> times_us;
  for (const WeightedTimeCut& cut : joint.cuts) {
    gpus.push_back(cut.gpu.value);
    weights.push_back(cut.weight);
    times_us.insert(times_us.end(), cut.alpha_us.begin(), cut.alpha_us.end());
  }
  group.put_array(joint.backwards ? "cuts_source" : "cuts_destination", gpus, H5T_STD_I32LE);
  group.put_array("cuts_weight", weights, "");
  group.put_array("cuts_alpha_us", times_us, "us");
}

MetricCertificate read_metric(const Hdf5GroupReader& group) {
  MetricColumns columns{.length = group.numbers("length")};
  if (!group.has_link("from_us")) {
    group.check_members({"kind", "length"});
    return to_metric(columns);
  }
  group.check_members({"kind", "length", "from_us", "data_source", "data_destinations_index",
                       "data_destinations_value", "shares_datum", "shares_destination", "shares_place",
                       "shares_length"});
  columns.from_us = group.numbers("from_us");
  columns.source = group.integers("data_source");
  columns.destinations = read_ragged(group, "data_destinations");
  columns.datum = group.integers("shares_datum");
  columns.destination = group.integers("shares_destination");
  columns.place = group.integers("shares_place");
  columns.share = group.numbers("shares_length");
  return to_metric(columns);
}

TimeCutCertificate read_time_cut(const Hdf5GroupReader& group) {
  const bool backwards = group.has_attribute("source");
  const char* gpu = backwards ? "source" : "destination";
  TimeCutCertificate cut{.gpu = to_id<GpuId>(group, gpu, group.integer(gpu)),
                         .alpha_us = group.numbers("alpha_us"),
                         .backwards = backwards};
  const bool counts = !backwards && group.has_link("sources");
  if (counts) {
    cut.sources = to_ids<GpuId>(group, "sources", group.integers("sources"));
    if (cut.sources.empty()) group.refuse("sources", "has to name a GPU where it is given");
  }
  group.check_members({"kind", gpu, "alpha_us", counts ? "sources" : gpu});
  return cut;
}

KnowledgeCertificate read_knowledge(const Hdf5GroupReader& group) {
  const bool backwards = group.has_attribute("source");
  const char* gpu = backwards ? "source" : "destination";
  const char* others = backwards ? "destinations" : "sources";
  group.check_members({"kind", gpu, others, "sets_index", "sets_value", "times_us"});
  KnowledgeCertificate knowledge{.gpu = to_id<GpuId>(group, gpu, group.integer(gpu)),
                                 .sources = to_ids<GpuId>(group, others, group.integers(others)),
                                 .sets = {},
                                 .times_us = group.numbers("times_us"),
                                 .backwards = backwards};
  const RaggedColumn sets = read_ragged(group, "sets");
  check_offsets("lower_bound.certificate.sets", sets.index, std::max<std::size_t>(1, sets.index.size()) - 1,
                sets.value.size(), "sets_index");
  for (std::size_t i = 0; i + 1 < sets.index.size(); ++i)
    knowledge.sets.push_back(to_ids<NodeId>(group, "sets_value", sets.row(i)));
  return knowledge;
}

PricesCertificate read_prices(const Hdf5GroupReader& group) {
  PricesCertificate prices{.from_us = group.numbers("from_us"),
                           .until_us = group.number("until_us"),
                           .place = {},
                           .price = group.numbers("price")};
  for (const std::int64_t place : group.integers("place")) {
    if (place < 0 || place > std::numeric_limits<std::int32_t>::max())
      group.refuse("place", fmt::format("{} is no place of a price", place));
    prices.place.push_back(static_cast<std::int32_t>(place));
  }
  return prices;
}

JointCutsCertificate read_joint_cuts(const Hdf5GroupReader& group) {
  const bool backwards = group.has_link("cuts_source");
  const char* gpu = backwards ? "cuts_source" : "cuts_destination";
  group.check_members({"kind", "from_us", "until_us", "place", "price", gpu, "cuts_weight", "cuts_alpha_us"});
  JointCutsCertificate joint{.prices = read_prices(group), .cuts = {}, .backwards = backwards};
  const std::vector<GpuId> gpus = to_ids<GpuId>(group, gpu, group.integers(gpu));
  const std::vector<double> weights = group.numbers("cuts_weight");
  const std::vector<double> times_us = group.numbers("cuts_alpha_us");
  const std::size_t each = gpus.empty() ? 0 : times_us.size() / gpus.size();
  if (weights.size() != gpus.size() || times_us.size() != each * gpus.size()) {
    group.refuse("cuts_weight",
                 fmt::format("{} weights and {} times for {} cuts; each cut has one weight and as "
                             "many times as the others",
                             weights.size(), times_us.size(), gpus.size()));
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto first = times_us.begin() + static_cast<std::ptrdiff_t>(i * each);
    joint.cuts.push_back({.gpu = gpus[i],
                          .weight = weights[i],
                          .alpha_us = {first, first + static_cast<std::ptrdiff_t>(each)}});
  }
  return joint;
}

MessagePricesCertificate read_message_prices(const Hdf5GroupReader& group) {
  const bool backwards = group.has_attribute("source");
  const char* gpu = backwards ? "source" : "destination";
  group.check_members({"kind", gpu, "from_us", "until_us", "place", "price", "parts"});
  MessagePricesCertificate messages{.prices = read_prices(group), .backwards = backwards};
  const std::int64_t parts = group.integer("parts");
  if (parts < 1 || parts > std::numeric_limits<int>::max())
    group.refuse("parts", fmt::format("{}; a period has 1 or more", parts));
  messages.parts = static_cast<int>(parts);
  if (group.integer(gpu) != -1) messages.gpu = to_id<GpuId>(group, gpu, group.integer(gpu));
  return messages;
}

}  // namespace

void write_certificate(const Hdf5GroupWriter& group, const Certificate& certificate) {
  group.put("kind", certificate_kind(certificate));
  std::visit(
      Overloaded{[&](const LatencyCertificate& latency) {
                   group.put("source", std::int64_t{latency.source.value});
                   group.put("destination", std::int64_t{latency.destination.value});
                 },
                 [&](const CutCertificate& cut) {
                   std::vector<std::int64_t> nodes;
                   for (const NodeId n : cut.nodes) nodes.push_back(n.value);
                   group.put_array("nodes", nodes, H5T_STD_I32LE);
                   group.put("bytes", cut.bytes);
                 },
                 [&](const MetricCertificate& metric) { write_metric(group, metric); },
                 [&](const PartitionCertificate& partition) {
                   group.put_array("part",
                                   std::vector<std::int64_t>(partition.part.begin(), partition.part.end()),
                                   H5T_STD_I32LE);
                   group.put("side", std::string(partition.enter ? "enter" : "leave"));
                 },
                 [&](const TimeCutCertificate& cut) {
                   group.put(cut.backwards ? "source" : "destination", std::int64_t{cut.gpu.value});
                   group.put_array("alpha_us", cut.alpha_us, "us");
                   if (!cut.sources.empty())
                     group.put_array("sources", numbers_of(cut.sources), H5T_STD_I32LE);
                 },
                 [&](const PricesCertificate& prices) { write_prices(group, prices); },
                 [&](const KnowledgeCertificate& knowledge) { write_knowledge(group, knowledge); },
                 [&](const JointCutsCertificate& joint) { write_joint_cuts(group, joint); },
                 [&](const MessagePricesCertificate& messages) {
                   group.put(messages.backwards ? "source" : "destination", std::int64_t{messages.gpu.value});
                   group.put("parts", std::int64_t{messages.parts});
                   write_prices(group, messages.prices);
                 }},
      certificate);
}

Certificate read_certificate(const Hdf5GroupReader& group) {
  const std::string kind = group.text("kind");
  if (kind == "latency") {
    group.check_members({"kind", "source", "destination"});
    return LatencyCertificate{
        .source = to_id<GpuId>(group, "source", group.integer("source")),
        .destination = to_id<GpuId>(group, "destination", group.integer("destination"))};
  }
  if (kind == "cut") {
    group.check_members({"kind", "nodes", "bytes"});
    return CutCertificate{.nodes = to_ids<NodeId>(group, "nodes", group.integers("nodes")),
                          .bytes = group.number("bytes")};
  }
  if (kind == "metric") return read_metric(group);
  if (kind == "partition") {
    group.check_members({"kind", "part", "side"});
    PartitionCertificate partition;
    for (const std::int64_t part : group.integers("part"))
      partition.part.push_back(part == -1 ? -1 : to_id<NodeId>(group, "part", part).value);
    const std::string side = group.text("side");
    if (side != "enter" && side != "leave")
      group.refuse("side", fmt::format("'{}'; it has to be enter or leave", side));
    partition.enter = side == "enter";
    return partition;
  }
  if (kind == "time_cut") return read_time_cut(group);
  if (kind == "prices") {
    group.check_members({"kind", "from_us", "until_us", "place", "price"});
    return read_prices(group);
  }
  if (kind == "knowledge") return read_knowledge(group);
  if (kind == "joint_cuts") return read_joint_cuts(group);
  if (kind == "message_prices") return read_message_prices(group);
  group.refuse("kind",
               fmt::format("'{}'; it has to be latency, cut, metric, partition, time_cut, prices, knowledge, "
                           "joint_cuts or message_prices",
                           kind));
}

/// As write_ragged() does, but some values at a time.
}  // namespace rondo
