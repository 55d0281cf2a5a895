#include "rondo/io/schedule_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <variant>

#include "certificate_hdf5.hpp"
#include "column_checks.hpp"
#include "format_version.hpp"
#include "hdf5_ids.hpp"
#include "hdf5_reader.hpp"
#include "hdf5_writer.hpp"
#include "ragged_columns.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/user_block.hpp"
#include "schedule_columns.hpp"
#include "send_writer.hpp"
#include "topology_hdf5.hpp"

namespace rondo {
namespace {

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
