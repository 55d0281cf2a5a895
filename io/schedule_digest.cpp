#include <bit>
#include <cstring>
#include <string>

#include "rondo/io/files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "digests are over little-endian bytes");

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
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
  return digest_of(bytes);
}

}  // namespace rondo
