#include <bit>
#include <cstring>
#include <string>

#include "digest.hpp"
#include "format_version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "digests are over little-endian bytes");

template <class T>
void append(Digest& digest, T value) {
  digest.add(&value, sizeof value);
}

/// What the sources of chunks add to a digest, where some chunk has several.
void append_sources(Digest& digest, const Demand& demand) {
  const auto append_gpus = [&](std::span<const GpuId> gpus) {
    append(digest, static_cast<std::int32_t>(gpus.size()));
    for (const GpuId gpu : gpus) append(digest, gpu.value);
  };
  digest.add("sources");
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const Contribution& contribution = demand.contribution(ChunkId(i));
    append_gpus(contribution.all_sources());
    append(digest, static_cast<std::uint8_t>(contribution.reduce));
    append(digest, static_cast<std::uint8_t>(contribution.source_ready_us.size() > 0));
    for (const double ready_us : contribution.source_ready_us) append(digest, ready_us);
    append(digest, static_cast<std::int32_t>(contribution.held.size()));
    for (const HeldSum& held : contribution.held) {
      append(digest, held.gpu.value);
      append_gpus(held.sources);
    }
  }
}

void append_tenants(Digest& digest, const Demand& demand) {
  digest.add("tenants");
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    append(digest, static_cast<std::int32_t>(demand.contribution(ChunkId(i)).tenant));
    append(digest, demand.contribution(ChunkId(i)).priority);
  }
}

void append_transfers(Digest& digest, const std::vector<Send>& sends) {
  digest.add("transfers");
  for (const Send& send : sends) {
    append(digest, send.transfer);
    append(digest, send.has_rate() ? send.rate_GBps : 0.0);  // one pattern of bits for all that is absent
  }
}

}  // namespace

ScheduleDigest::ScheduleDigest(const Demand& demand) : demand_(demand), digest_(std::make_unique<Digest>()) {
  for (std::size_t i = 0; i < demand.num_chunks(); ++i) {
    const ChunkId c(i);
    append(*digest_, demand.origin(c).value);
    append(*digest_, static_cast<std::int32_t>(demand.destinations(c).size()));
    for (const GpuId d : demand.destinations(c)) append(*digest_, d.value);
    append(*digest_, demand.bytes(c));
  }
}

ScheduleDigest::~ScheduleDigest() = default;

void ScheduleDigest::add(std::span<const Send> sends) {
  for (const Send& send : sends) {
    append(*digest_, send.chunk.value);
    append(*digest_, send.link.value);
    append(*digest_, send.start_us);
    append(*digest_, send.end_us);
    append(*digest_, send.arrival_us);
    append(*digest_, static_cast<std::uint8_t>(send.op));
  }
}

std::string ScheduleDigest::text(const std::vector<Send>& numbered) {
  if (demand_.has_several_sources()) append_sources(*digest_, demand_);
  if (have_tenants(demand_)) append_tenants(*digest_, demand_);
  if (have_transfers(numbered) || have_rates(numbered)) append_transfers(*digest_, numbered);
  return digest_->text();
}

std::string schedule_digest(const Demand& demand, const Schedule& schedule) {
  ScheduleDigest digest(demand);
  digest.add(schedule.sends);
  return digest.text(schedule.sends);
}

}  // namespace rondo
