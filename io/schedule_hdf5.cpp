#include "rondo/io/schedule_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <variant>

#include "column_checks.hpp"
#include "format_version.hpp"
#include "hdf5_reader.hpp"
#include "hdf5_writer.hpp"
#include "metric_columns.hpp"
#include "overloaded.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/user_block.hpp"
#include "schedule_columns.hpp"
#include "send_writer.hpp"
#include "topology_hdf5.hpp"

namespace rondo {
namespace {

void write_ragged(const Hdf5GroupWriter& group, const std::string& name, const RaggedColumn& column) {
  group.put_array(name + "_index", column.index, H5T_STD_I64LE);
  group.put_array(name + "_value", column.value, H5T_STD_I32LE);
}

RaggedColumn read_ragged(const Hdf5GroupReader& group, const std::string& name) {
  return {.index = group.integers((name + "_index").c_str()),
          .value = group.integers((name + "_value").c_str())};
}

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

void write_knowledge(const Hdf5GroupWriter& group, const KnowledgeCertificate& knowledge) {
  group.put(knowledge.backwards ? "source" : "destination", std::int64_t{knowledge.gpu.value});
  std::vector<std::int64_t> sources;
  for (const GpuId g : knowledge.sources) sources.push_back(g.value);
  group.put_array(knowledge.backwards ? "destinations" : "sources", sources, H5T_STD_I32LE);
  RaggedColumn sets{.index = {0}};
  for (const std::vector<NodeId>& set : knowledge.sets) {
    std::vector<std::int64_t> row;
    for (const NodeId n : set) row.push_back(n.value);
    sets.add_row(row);
  }
  write_ragged(group, "sets", sets);
  group.put_array("times_us", knowledge.times_us, "us");
}

void write_certificate(const Hdf5GroupWriter& group, const Certificate& certificate) {
  group.put("kind", certificate_kind(certificate));
  std::visit(Overloaded{[&](const LatencyCertificate& latency) {
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
                          group.put_array(
                              "part", std::vector<std::int64_t>(partition.part.begin(), partition.part.end()),
                              H5T_STD_I32LE);
                          group.put("side", std::string(partition.enter ? "enter" : "leave"));
                        },
                        [&](const TimeCutCertificate& cut) {
                          group.put(cut.backwards ? "source" : "destination", std::int64_t{cut.gpu.value});
                          group.put_array("alpha_us", cut.alpha_us, "us");
                        },
                        [&](const PricesCertificate& prices) {
                          group.put("until_us", prices.until_us);
                          group.put_array("from_us", prices.from_us, "us");
                          group.put_array("place",
                                          std::vector<std::int64_t>(prices.place.begin(), prices.place.end()),
                                          H5T_STD_I32LE);
                          group.put_array("price", prices.price, "");
                        },
                        [&](const KnowledgeCertificate& knowledge) { write_knowledge(group, knowledge); }},
             certificate);
}

template <class Id>
Id to_id(const Hdf5GroupReader& group, const char* name, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
    group.refuse(name, fmt::format("{} is no id", value));
  }
  return Id(static_cast<std::int32_t>(value));
}

template <class Id>
std::vector<Id> to_ids(const Hdf5GroupReader& group, const char* name, std::span<const std::int64_t> values) {
  std::vector<Id> ids;
  for (const std::int64_t value : values) ids.push_back(to_id<Id>(group, name, value));
  return ids;
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
  if (kind == "time_cut") {
    const bool backwards = group.has_attribute("source");
    const char* gpu = backwards ? "source" : "destination";
    group.check_members({"kind", gpu, "alpha_us"});
    return TimeCutCertificate{.gpu = to_id<GpuId>(group, gpu, group.integer(gpu)),
                              .alpha_us = group.numbers("alpha_us"),
                              .backwards = backwards};
  }
  if (kind == "prices") {
    group.check_members({"kind", "from_us", "until_us", "place", "price"});
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
  if (kind == "knowledge") return read_knowledge(group);
  group.refuse(
      "kind",
      fmt::format("'{}'; it has to be latency, cut, metric, partition, time_cut, prices or knowledge", kind));
}

/// As write_ragged() does, but some values at a time.
void write_destinations(const Hdf5GroupWriter& group, const std::vector<std::int64_t>& index,
                        const Demand& demand) {
  group.put_array("destinations_index", index, H5T_STD_I64LE);
  const auto count = static_cast<std::size_t>(index.back());
  Hdf5ColumnAppender values =
      group.create_column("destinations_value", count, H5T_STD_I32LE, H5T_NATIVE_INT32, "");
  std::vector<std::int32_t> piece;
  piece.reserve(std::min(count, kHdf5Piece));
  const auto write = [&] {
    values.append(piece.data(), piece.size());
    piece.clear();
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId gpu : demand.destinations(ChunkId(c))) {
      piece.push_back(gpu.value);
      if (piece.size() == kHdf5Piece) write();
    }
  }
  write();
}

void write_chunks(const Hdf5GroupWriter& group, const ChunkColumns& chunks, const Demand& demand) {
  group.put_array("origin", chunks.origin, H5T_STD_I32LE);
  write_destinations(group, chunks.destinations.index, demand);
  if (!chunks.ready_us.empty()) group.put_array("ready_us", chunks.ready_us, "us");
  if (!chunks.sources.is_absent()) write_ragged(group, "sources", chunks.sources);
  if (!chunks.sources_ready_us.empty()) group.put_array("sources_ready_us", chunks.sources_ready_us, "us");
  if (!chunks.reduce.empty()) group.put_array("reduce", chunks.reduce, H5T_STD_U8LE);
  if (!chunks.tenant.empty()) group.put_array("tenant", chunks.tenant, H5T_STD_I32LE);
  if (!chunks.priority.empty()) group.put_array("priority", chunks.priority, "");
  if (chunks.held.chunk.empty()) return;
  group.put_array("held_chunk", chunks.held.chunk, H5T_STD_I32LE);
  group.put_array("held_gpu", chunks.held.gpu, H5T_STD_I32LE);
  write_ragged(group, "held_sources", chunks.held.sources);
}

ChunkColumns read_chunks(const Hdf5GroupReader& group, int version) {
  group.check_members({"origin", "destinations_index", "destinations_value", "ready_us", "sources_index",
                       "sources_value", "sources_ready_us", "reduce", "tenant", "priority", "held_chunk",
                       "held_gpu", "held_sources_index", "held_sources_value"});
  group.check_version(version,
                      {"sources_index", "sources_ready_us", "reduce", "tenant", "priority", "held_chunk"});
  ChunkColumns chunks;
  chunks.origin = group.integers("origin");
  chunks.destinations = read_ragged(group, "destinations");
  if (group.has_link("ready_us")) chunks.ready_us = group.numbers("ready_us");
  if (group.has_link("sources_index")) chunks.sources = read_ragged(group, "sources");
  if (group.has_link("sources_ready_us")) chunks.sources_ready_us = group.numbers("sources_ready_us");
  if (group.has_link("reduce")) chunks.reduce = group.integers("reduce");
  if (group.has_link("tenant")) chunks.tenant = group.integers("tenant");
  if (group.has_link("priority")) chunks.priority = group.numbers("priority");
  if (group.has_link("held_chunk")) {
    chunks.held = {.chunk = group.integers("held_chunk"),
                   .gpu = group.integers("held_gpu"),
                   .sources = read_ragged(group, "held_sources")};
  }
  return chunks;
}

void write_sends(const Hdf5GroupWriter& group, std::size_t num_sends, SendOptions options,
                 const SendBlocks& blocks) {
  SendWriter writer(group, num_sends, options);
  for (std::span<const Send> block = blocks(); !block.empty(); block = blocks()) writer.add(block);
  writer.finish();
}

SendColumns read_sends(const Hdf5GroupReader& group, int version) {
  group.check_members({"chunk", "link", "start_us", "end_us", "arrival_us", "op", "transfer", "rate_GBps"});
  group.check_version(version, {"transfer", "rate_GBps"});
  SendColumns sends{.chunk = group.integers("chunk"),
                    .link = group.integers("link"),
                    .start_us = group.numbers("start_us"),
                    .end_us = group.numbers("end_us"),
                    .arrival_us = group.numbers("arrival_us"),
                    .op = group.integers("op")};
  if (group.has_link("transfer")) sends.transfer = group.integers("transfer");
  if (group.has_link("rate_GBps")) sends.rate_GBps = group.numbers("rate_GBps");
  return sends;
}

void write_shape(const Hdf5GroupWriter& root, const CollectiveShape& shape) {
  std::vector<std::int64_t> group;
  for (const GpuId gpu : shape.group) group.push_back(gpu.value);
  if (!group.empty()) root.put_array("group", group, H5T_STD_I32LE);
  if (!shape.counts.empty()) root.put_array("counts", shape.counts, "bytes");
  if (!shape.relays) root.put("relay", std::string("none"));
}

/// All but the topology and the sends.
void write_columns(const Hdf5GroupWriter& root, const ScheduleColumns& columns, const Demand& demand) {
  root.put("format", std::string("rondo-schedule"));
  root.put("version", std::int64_t{columns.version});
  root.put("producer", columns.producer);
  root.put("collective", columns.collective);
  root.put("size_bytes", columns.size_bytes);
  write_shape(root, columns.shape);
  if (columns.uniform_chunk_bytes) {
    root.put("chunk_bytes", columns.chunk_bytes.front());
  } else {
    root.put_array("chunk_bytes", columns.chunk_bytes, "bytes");
  }
  write_chunks(root.create_group("chunks"), columns.chunks, demand);
  root.put("finish_us", columns.finish_us);
  if (columns.algorithm_bandwidth_GBps)
    root.put("algorithm_bandwidth_GBps", *columns.algorithm_bandwidth_GBps);
  if (columns.lower_bound) {
    const Hdf5GroupWriter group = root.create_group("lower_bound");
    group.put("us", columns.lower_bound->us);
    write_certificate(group.create_group("certificate"), columns.lower_bound->certificate);
  }
  if (columns.gap) root.put("gap", *columns.gap);
}

CollectiveShape read_shape(const Hdf5GroupReader& root) {
  CollectiveShape shape;
  if (root.has_link("group")) shape.group = to_ids<GpuId>(root, "group", root.integers("group"));
  if (root.has_link("counts")) shape.counts = root.numbers("counts");
  if (root.has_attribute("relay")) {
    const std::string relay = root.text("relay");
    if (relay != "none") root.refuse("relay", fmt::format("'{}'; it has to be none, or left out", relay));
    shape.relays = false;
  }
  return shape;
}

ScheduleColumns read_columns(const Hdf5GroupReader& root) {
  root.check_members({"format", "version", "producer", "topology", "collective", "size_bytes", "group",
                      "counts", "relay", "chunk_bytes", "chunks", "sends", "finish_us",
                      "algorithm_bandwidth_GBps", "lower_bound", "gap"});
  const int version = root.check_format("rondo-schedule");
  ScheduleColumns columns;
  columns.producer = root.text("producer");
  columns.collective = root.text("collective");
  columns.size_bytes = root.number("size_bytes");
  root.check_version(version, {"group", "counts"});
  columns.shape = read_shape(root);
  columns.uniform_chunk_bytes = root.has_attribute("chunk_bytes");
  columns.chunk_bytes = columns.uniform_chunk_bytes ? std::vector<double>{root.number("chunk_bytes")}
                                                    : root.numbers("chunk_bytes");
  columns.chunks = read_chunks(root.open_group("chunks"), version);
  columns.sends = read_sends(root.open_group("sends"), version);
  columns.finish_us = root.number("finish_us");
  if (root.has_attribute("algorithm_bandwidth_GBps")) {
    columns.algorithm_bandwidth_GBps = root.number("algorithm_bandwidth_GBps");
  }
  if (root.has_link("lower_bound")) {
    const Hdf5GroupReader group = root.open_group("lower_bound");
    group.check_members({"us", "certificate"});
    columns.lower_bound = {.us = group.number("us"),
                           .certificate = read_certificate(group.open_group("certificate"))};
  }
  if (root.has_attribute("gap")) columns.gap = root.number("gap");
  return columns;
}

}  // namespace

namespace {

void write_blocks(const std::filesystem::path& path, const ProvenSchedule& proven, std::size_t num_sends,
                  SendOptions options, const SendBlocks& blocks, const std::string& problem_digest) {
  std::vector<char> bytes;
  {
    const Hdf5Image image(kUserBlockBytes);
    write_topology(image.root().create_group("topology"), proven.topology);
    write_columns(image.root(), short_columns(proven), proven.demand);
    write_sends(image.root().create_group("sends"), num_sends, options, blocks);
    bytes = image.bytes();
  }
  seal_user_block(bytes, problem_digest, -1);
  write_atomically(path, {bytes.data(), bytes.size()});
}

}  // namespace

void write_schedule_hdf5(const std::filesystem::path& path, const ProvenSchedule& proven,
                         const std::string& problem_digest) {
  const std::vector<Send>& sends = proven.schedule.sends;
  const auto all_at_once = [rest = std::span<const Send>(sends)]() mutable {
    return std::exchange(rest, {});
  };
  write_blocks(path, proven, sends.size(), {have_transfers(sends), have_rates(sends)}, all_at_once,
               problem_digest);
}

void write_schedule_hdf5(const std::filesystem::path& path, const ProvenSchedule& proven,
                         std::size_t num_sends, const SendBlocks& blocks, const std::string& problem_digest) {
  write_blocks(path, proven, num_sends, {}, blocks, problem_digest);
}

ProvenSchedule read_schedule_hdf5(const std::filesystem::path& path) {
  verify_user_block(path);
  const Hdf5InputFile file(path);
  const ScheduleColumns columns = read_columns(file.root());
  return to_proven_schedule(read_topology(file.root().open_group("topology")), columns);
}

}  // namespace rondo
