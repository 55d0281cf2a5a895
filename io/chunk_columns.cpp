#include "chunk_columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "column_checks.hpp"
#include "format_version.hpp"

namespace rondo {
namespace {

void check_held(const ChunkColumns& chunks, std::size_t num_gpus) {
  const HeldColumns& held = chunks.held;
  const std::size_t n = held.chunk.size();
  check_length("chunks.held_gpu", held.gpu.size(), n, "chunks.held_chunk");
  check_range("chunks.held_chunk", held.chunk, chunks.origin.size());
  check_range("chunks.held_gpu", held.gpu, num_gpus);
  if (n == 0 && held.sources.is_absent()) return;
  check_offsets("chunks.held_sources", held.sources.index, n, held.sources.value.size(), "chunks.held_chunk");
  check_range("chunks.held_sources", held.sources.value, num_gpus);
}

void check_chunks(const ChunkColumns& chunks, std::size_t num_gpus) {
  const std::size_t n = chunks.origin.size();
  check_offsets("chunks.destinations", chunks.destinations.index, n, chunks.destinations.value.size(),
                "chunks.origin");
  check_range("chunks.origin", chunks.origin, num_gpus);
  check_range("chunks.destinations", chunks.destinations.value, num_gpus);
  if (!chunks.ready_us.empty()) check_length("chunks.ready_us", chunks.ready_us.size(), n, "chunks.origin");
  if (!chunks.reduce.empty()) check_length("chunks.reduce", chunks.reduce.size(), n, "chunks.origin");
  check_range("chunks.reduce", chunks.reduce, 2);
  if (!chunks.tenant.empty()) check_length("chunks.tenant", chunks.tenant.size(), n, "chunks.origin");
  check_range("chunks.tenant", chunks.tenant, std::size_t{1} << 31);
  if (!chunks.priority.empty()) check_length("chunks.priority", chunks.priority.size(), n, "chunks.origin");
  check_finite("chunks.priority", chunks.priority);
  if (!chunks.sources.is_absent()) {
    check_offsets("chunks.sources", chunks.sources.index, n, chunks.sources.value.size(), "chunks.origin");
    check_range("chunks.sources", chunks.sources.value, num_gpus);
  }
  if (!chunks.sources_ready_us.empty()) {
    check_length("chunks.sources_ready_us", chunks.sources_ready_us.size(), chunks.sources.value.size(),
                 "chunks.sources");
  }
  check_held(chunks, num_gpus);
}

std::vector<GpuId> to_gpus(std::span<const std::int64_t> row) {
  std::vector<GpuId> gpus;
  gpus.reserve(row.size());
  for (const std::int64_t gpu : row) gpus.push_back(GpuId(static_cast<std::int32_t>(gpu)));
  return gpus;
}

void read_sources(const ChunkColumns& chunks, std::size_t c, Contribution& contribution) {
  const std::vector<GpuId> sources = to_gpus(chunks.sources.row(c));
  if (sources.empty()) refuse_column(fmt::format("chunks.sources[{}] is empty, so nobody has the data", c));
  if (sources.front() != contribution.origin) {
    refuse_column(fmt::format("chunks.origin[{}] is {}; it has to be the first of chunks.sources[{}], {}", c,
                              contribution.origin.value, c, sources.front().value));
  }
  if (!chunks.sources_ready_us.empty()) {
    const auto first = chunks.sources_ready_us.begin();
    std::vector<double> ready_us(first + chunks.sources.index[c], first + chunks.sources.index[c + 1]);
    if (ready_us.size() == 1) contribution.ready_us = ready_us.front();
    if (std::ranges::any_of(ready_us, [&](double us) { return us != contribution.ready_us; }))
      contribution.source_ready_us = std::move(ready_us);
  }
  contribution.sources = sources;
}

bool has_source_times(const Demand& demand) {
  return std::ranges::any_of(demand.contributions(),
                             [](const Contribution& c) { return !c.source_ready_us.empty(); });
}

/// The columns that only chunks with several sources need.
void add_sources(ChunkColumns& columns, const Demand& demand) {
  const bool source_times = has_source_times(demand);
  bool any_reduces = false;
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const Contribution& contribution = demand.contribution(ChunkId(i));
    const auto sources = contribution.all_sources();
    columns.sources.add_row(sources);
    columns.reduce.push_back(contribution.reduce ? 1 : 0);
    any_reduces = any_reduces || contribution.reduce;
    for (std::size_t s = 0; source_times && s < sources.size(); ++s)
      columns.sources_ready_us.push_back(
          contribution.source_ready_us.empty() ? contribution.ready_us : contribution.source_ready_us[s]);
    for (const HeldSum& held : contribution.held) {
      columns.held.chunk.push_back(static_cast<std::int64_t>(i));
      columns.held.gpu.push_back(held.gpu.value);
      columns.held.sources.add_row(held.sources);
    }
  }
  if (!any_reduces) columns.reduce.clear();
}

void add_tenants(ChunkColumns& columns, const Demand& demand) {
  bool all_equal = true;
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const Contribution& contribution = demand.contribution(ChunkId(i));
    columns.tenant.push_back(contribution.tenant);
    columns.priority.push_back(contribution.priority);
    all_equal = all_equal && contribution.priority == 1;
  }
  if (all_equal) columns.priority.clear();
}

}  // namespace

void RaggedColumn::add_row(const std::vector<std::int64_t>& row) {
  if (index.empty()) index.push_back(0);
  value.insert(value.end(), row.begin(), row.end());
  index.push_back(static_cast<std::int64_t>(value.size()));
}

void RaggedColumn::add_row(std::span<const GpuId> row) {
  if (index.empty()) index.push_back(0);
  for (const GpuId gpu : row) value.push_back(gpu.value);
  index.push_back(static_cast<std::int64_t>(value.size()));
}

std::span<const std::int64_t> RaggedColumn::row(std::size_t i) const {
  return std::span(value).subspan(static_cast<std::size_t>(index[i]),
                                  static_cast<std::size_t>(index[i + 1] - index[i]));
}

ChunkColumns columns_without_destinations(const Demand& demand) {
  ChunkColumns columns;
  bool all_ready = true;
  columns.destinations.index = {0};
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c(i);
    columns.origin.push_back(demand.origin(c).value);
    columns.destinations.index.push_back(columns.destinations.index.back() +
                                         static_cast<std::int64_t>(demand.destinations(c).size()));
    columns.ready_us.push_back(demand.ready_us(c));
    all_ready = all_ready && demand.ready_us(c) == 0;
  }
  if (all_ready) columns.ready_us.clear();
  if (demand.has_several_sources()) add_sources(columns, demand);
  if (have_tenants(demand)) add_tenants(columns, demand);
  return columns;
}

ChunkColumns chunk_columns_of(const Demand& demand) {
  ChunkColumns columns = columns_without_destinations(demand);
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    for (const GpuId gpu : demand.destinations(ChunkId(i))) columns.destinations.value.push_back(gpu.value);
  }
  return columns;
}

std::vector<Contribution> to_contributions(const ChunkColumns& chunks, const std::vector<double>& chunk_bytes,
                                           std::size_t num_gpus) {
  check_chunks(chunks, num_gpus);
  std::vector<Contribution> contributions(chunks.origin.size());
  for (std::size_t c = 0; c < contributions.size(); ++c) {
    Contribution& contribution = contributions[c];
    contribution.origin = GpuId(static_cast<std::int32_t>(chunks.origin[c]));
    contribution.bytes = chunk_bytes[chunk_bytes.size() == 1 ? 0 : c];
    contribution.destinations = to_gpus(chunks.destinations.row(c));
    if (!chunks.ready_us.empty()) contribution.ready_us = chunks.ready_us[c];
    if (!chunks.tenant.empty()) contribution.tenant = static_cast<int>(chunks.tenant[c]);
    if (!chunks.priority.empty()) contribution.priority = chunks.priority[c];
    if (!chunks.reduce.empty()) contribution.reduce = chunks.reduce[c] == 1;
    if (!chunks.sources.is_absent()) read_sources(chunks, c, contribution);
  }
  for (std::size_t h = 0; h < chunks.held.chunk.size(); ++h) {
    contributions[static_cast<std::size_t>(chunks.held.chunk[h])].held.push_back(
        {.gpu = GpuId(static_cast<std::int32_t>(chunks.held.gpu[h])),
         .sources = to_gpus(chunks.held.sources.row(h))});
  }
  return contributions;
}

}  // namespace rondo
