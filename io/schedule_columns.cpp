#include "schedule_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>
#include <variant>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::bad_data, message);
}

void check_length(const char* name, std::size_t length, std::size_t expected, const char* as_in) {
  if (length == expected) return;
  refuse(fmt::format("{} has {} values; it has to have {}, as {}", name, length, expected, as_in));
}

void check_range(const char* name, const std::vector<std::int64_t>& values, std::size_t count) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && static_cast<std::uint64_t>(values[i]) < count) continue;
    refuse(fmt::format("{}[{}] is {}; it has to be an integer from 0 to {}", name, i, values[i],
                       static_cast<std::int64_t>(count) - 1));
  }
}

void check_finite(const std::string& name, double value) {
  if (!std::isfinite(value)) refuse(fmt::format("{} is {}; it has to be finite", name, value));
}

void check_finite(const char* name, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) check_finite(fmt::format("{}[{}]", name, i), values[i]);
  }
}

void check_chunks(const ChunkColumns& chunks, std::size_t num_gpus) {
  const std::size_t n = chunks.origin.size();
  if (chunks.destinations_index.empty()) refuse("chunks.destinations_index is empty; it begins with 0");
  check_length("chunks.destinations", chunks.destinations_index.size() - 1, n, "chunks.origin");
  const auto& index = chunks.destinations_index;
  const auto total = static_cast<std::int64_t>(chunks.destinations_value.size());
  if (index.front() != 0 || index.back() != total || !std::is_sorted(index.begin(), index.end())) {
    refuse(fmt::format("chunks.destinations_index has to ascend from 0 to {}, the number of destinations",
                       total));
  }
  check_range("chunks.origin", chunks.origin, num_gpus);
  check_range("chunks.destinations", chunks.destinations_value, num_gpus);
  if (!chunks.ready_us.empty()) check_length("chunks.ready_us", chunks.ready_us.size(), n, "chunks.origin");
}

void check_sends(const SendColumns& sends, std::size_t num_chunks, std::size_t num_links) {
  const std::size_t n = sends.chunk.size();
  check_length("sends.link", sends.link.size(), n, "sends.chunk");
  check_length("sends.start_us", sends.start_us.size(), n, "sends.chunk");
  check_length("sends.end_us", sends.end_us.size(), n, "sends.chunk");
  check_length("sends.arrival_us", sends.arrival_us.size(), n, "sends.chunk");
  check_length("sends.op", sends.op.size(), n, "sends.chunk");
  check_range("sends.chunk", sends.chunk, num_chunks);
  check_range("sends.link", sends.link, num_links);
  check_range("sends.op", sends.op, 2);
  check_finite("sends.start_us", sends.start_us);
  check_finite("sends.end_us", sends.end_us);
  check_finite("sends.arrival_us", sends.arrival_us);
  const auto reduce = std::find(sends.op.begin(), sends.op.end(), static_cast<std::int64_t>(SendOp::reduce));
  if (reduce != sends.op.end()) {
    throw Error(ExitCode::unavailable, fmt::format("sends.op[{}] is 1 (reduce), which is not supported yet",
                                                   reduce - sends.op.begin()));
  }
}

bool in_order(const Send& a, const Send& b) {
  return std::tie(a.start_us, a.link, a.chunk) <= std::tie(b.start_us, b.link, b.chunk);
}

std::vector<Send> to_sends(const SendColumns& columns) {
  std::vector<Send> sends;
  sends.reserve(columns.chunk.size());
  for (std::size_t i = 0; i < columns.chunk.size(); ++i) {
    sends.push_back({.chunk = ChunkId(static_cast<std::int32_t>(columns.chunk[i])),
                     .link = LinkId(static_cast<std::int32_t>(columns.link[i])),
                     .start_us = columns.start_us[i],
                     .end_us = columns.end_us[i],
                     .arrival_us = columns.arrival_us[i],
                     .op = SendOp::copy});
    if (i > 0 && !in_order(sends[i - 1], sends[i])) {
      refuse(fmt::format("sends[{}] stands after sends[{}], but sends are sorted by (start_us, link, chunk)",
                         i, i - 1));
    }
  }
  return sends;
}

std::vector<Contribution> to_contributions(const ScheduleColumns& columns) {
  const ChunkColumns& chunks = columns.chunks;
  std::vector<Contribution> contributions(chunks.origin.size());
  for (std::size_t c = 0; c < contributions.size(); ++c) {
    Contribution& contribution = contributions[c];
    contribution.origin = GpuId(static_cast<std::int32_t>(chunks.origin[c]));
    contribution.bytes = columns.chunk_bytes[columns.uniform_chunk_bytes ? 0 : c];
    for (auto d = chunks.destinations_index[c]; d < chunks.destinations_index[c + 1]; ++d) {
      contribution.destinations.push_back(
          GpuId(static_cast<std::int32_t>(chunks.destinations_value[static_cast<std::size_t>(d)])));
    }
    if (!chunks.ready_us.empty()) contribution.ready_us = chunks.ready_us[c];
  }
  return contributions;
}

Collective read_collective(const std::string& name) {
  try {
    return parse_collective(name);
  } catch (const Error& error) {
    refuse(fmt::format("collective: {}", error.what()));  // of a file, not of the command line
  }
}

void check_lower_bound(const LowerBound& bound) {
  check_finite("lower_bound.us", bound.us);
  if (const auto* cut = std::get_if<CutCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.bytes", cut->bytes);
  }
  if (const auto* metric = std::get_if<MetricCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.length", metric->length);
  }
}

// The two figures serve people and other programs; the example of FORMATS.md gives them to five digits, so
// more may not be asked.
void check_figures(const ScheduleColumns& columns) {
  check_finite("finish_us", columns.finish_us);
  if (columns.algorithm_bandwidth_GBps) {
    const double claimed = *columns.algorithm_bandwidth_GBps;
    const double derived = algorithm_bandwidth_GBps(columns.size_bytes, columns.finish_us);
    if (!(std::abs(claimed - derived) <= 1e-4 * std::abs(derived))) {
      refuse(
          fmt::format("algorithm_bandwidth_GBps is {}; size_bytes / finish_us gives {}", claimed, derived));
    }
  }
  if (columns.gap) {
    if (!columns.lower_bound) refuse("there is a gap, but no lower_bound that it would refer to");
    const double derived = columns.finish_us / columns.lower_bound->us - 1;
    if (!(std::abs(*columns.gap - derived) <= 1e-5)) {
      refuse(fmt::format("gap is {}; finish_us / lower_bound.us - 1 gives {}", *columns.gap, derived));
    }
  }
}

}  // namespace

ScheduleColumns to_columns(const ProvenSchedule& proven) {
  const Demand& demand = proven.demand;
  const std::vector<Send>& sends = proven.schedule.sends;
  assert(std::is_sorted(sends.begin(), sends.end(),
                        [](const Send& a, const Send& b) { return !in_order(b, a); }));

  ScheduleColumns columns;
  columns.producer = proven.producer;
  columns.collective = to_string(demand.collective());
  columns.size_bytes = demand.size_bytes();
  columns.uniform_chunk_bytes = demand.uniform_chunk_bytes().has_value();
  if (columns.uniform_chunk_bytes) columns.chunk_bytes = {*demand.uniform_chunk_bytes()};

  bool all_ready = true;
  columns.chunks.destinations_index = {0};
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c(i);
    columns.chunks.origin.push_back(demand.origin(c).value);
    for (const GpuId d : demand.destinations(c)) columns.chunks.destinations_value.push_back(d.value);
    columns.chunks.destinations_index.push_back(
        static_cast<std::int64_t>(columns.chunks.destinations_value.size()));
    if (!columns.uniform_chunk_bytes) columns.chunk_bytes.push_back(demand.bytes(c));
    columns.chunks.ready_us.push_back(demand.ready_us(c));
    all_ready = all_ready && demand.ready_us(c) == 0;
  }
  if (all_ready) columns.chunks.ready_us.clear();

  for (const Send& send : sends) {
    columns.sends.chunk.push_back(send.chunk.value);
    columns.sends.link.push_back(send.link.value);
    columns.sends.start_us.push_back(send.start_us);
    columns.sends.end_us.push_back(send.end_us);
    columns.sends.arrival_us.push_back(send.arrival_us);
    columns.sends.op.push_back(static_cast<std::int64_t>(send.op));
  }

  columns.finish_us = proven.schedule.finish_us;
  columns.algorithm_bandwidth_GBps = algorithm_bandwidth_GBps(columns.size_bytes, columns.finish_us);
  columns.lower_bound = proven.lower_bound;
  if (proven.lower_bound) columns.gap = columns.finish_us / proven.lower_bound->us - 1;
  return columns;
}

ProvenSchedule to_proven_schedule(Topology topology, const ScheduleColumns& columns) {
  check_chunks(columns.chunks, topology.num_gpus());
  const std::size_t num_chunks = columns.chunks.origin.size();
  if (columns.uniform_chunk_bytes) {
    check_length("chunk_bytes", columns.chunk_bytes.size(), 1, "one figure for all chunks");
  } else {
    check_length("chunk_bytes", columns.chunk_bytes.size(), num_chunks, "chunks.origin");
  }
  check_sends(columns.sends, num_chunks, topology.num_links());
  if (columns.lower_bound) check_lower_bound(*columns.lower_bound);
  check_figures(columns);
  Demand demand(read_collective(columns.collective), columns.size_bytes, topology.num_gpus(),
                to_contributions(columns), 1);
  return {.topology = std::move(topology),
          .demand = std::move(demand),
          .schedule = {.sends = to_sends(columns.sends), .finish_us = columns.finish_us},
          .lower_bound = columns.lower_bound,
          .producer = columns.producer};
}

}  // namespace rondo
