#include <bit>
#include <cstring>
#include <string>

#include "format_version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "digests are over little-endian bytes");

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// What the sources of chunks add to a digest, where some chunk has several.
void append_sources(std::string& bytes, const Demand& demand) {
  const auto append_gpus = [&](std::span<const GpuId> gpus) {
    append(bytes, static_cast<std::int32_t>(gpus.size()));
    for (const GpuId gpu : gpus) append(bytes, gpu.value);
  };
  bytes += "sources";
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const Contribution& contribution = demand.contribution(ChunkId(i));
    append_gpus(contribution.all_sources());
    append(bytes, static_cast<std::uint8_t>(contribution.reduce));
    append(bytes, static_cast<std::uint8_t>(contribution.source_ready_us.size() > 0));
    for (const double ready_us : contribution.source_ready_us) append(bytes, ready_us);
    append(bytes, static_cast<std::int32_t>(contribution.held.size()));
    for (const HeldSum& held : contribution.held) {
      append(bytes, held.gpu.value);
      append_gpus(held.sources);
    }
  }
}

void append_tenants(std::string& bytes, const Demand& demand) {
  bytes += "tenants";
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    append(bytes, static_cast<std::int32_t>(demand.contribution(ChunkId(i)).tenant));
    append(bytes, demand.contribution(ChunkId(i)).priority);
  }
}

void append_transfers(std::string& bytes, const std::vector<Send>& sends) {
  bytes += "transfers";
  for (const Send& send : sends) {
    append(bytes, send.transfer);
    append(bytes, send.has_rate() ? send.rate_GBps : 0.0);  // one pattern of bits for all that is absent
  }
}

}  // namespace

std::string schedule_digest(const Demand& demand, const Schedule& schedule) {
  std::string bytes;
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c(i);
    append(bytes, demand.origin(c).value);
    append(bytes, static_cast<std::int32_t>(demand.destinations(c).size()));
    for (const GpuId d : demand.destinations(c)) append(bytes, d.value);
    append(bytes, demand.bytes(c));
  }
  for (const Send& send : schedule.sends) {
    append(bytes, send.chunk.value);
    append(bytes, send.link.value);
    append(bytes, send.start_us);
    append(bytes, send.end_us);
    append(bytes, send.arrival_us);
    append(bytes, static_cast<std::uint8_t>(send.op));
  }
  if (demand.has_several_sources()) append_sources(bytes, demand);
  if (have_tenants(demand)) append_tenants(bytes, demand);
  if (have_transfers(schedule.sends) || have_rates(schedule.sends)) append_transfers(bytes, schedule.sends);
  return digest_of(bytes);
}

}  // namespace rondo
