#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// What GPUs hold only to pass it on (FORMATS.md 3, rule 12).
namespace rondo {

/// A chunk is on a GPU that neither brought nor wants it, from its first byte to the end of the last send
/// that uses it. Overlapping stays of a chunk are one.
struct RelayStay {
  GpuId gpu;
  ChunkId chunk;
  double from_us = 0;
  double to_us = 0;
  std::size_t send = 0;  ///< position in the list of the send that brought it first
};

/// The same topology where every GPU has `bytes` for what it only passes on.
Topology with_relay_memory(const Topology& topology, double bytes);

/// Whether a GPU neither brings nor wants the data.
bool only_relays(const Contribution& part, GpuId gpu);

/// Whether some GPU that would only pass data on has little memory for that.
bool has_limited_relays(const Topology& topology, const Demand& demand);

/// By GPU, then by begin. Of a schedule that the replay accepts but for rule 12.
std::vector<RelayStay> relay_stays(const Topology& topology, const Demand& demand,
                                   std::span<const Send> sends);

/// The stay of one GPU that begins when more than `limit` bytes are there, with these bytes; `peak`, unless
/// null, becomes the most that are there at once.
struct Overflow {
  const RelayStay* stay = nullptr;  ///< null: there is none
  double bytes = 0;
};
Overflow find_overflow(std::span<const RelayStay> of_gpu, const Demand& demand, double limit,
                       double* peak = nullptr);

/// One a GPU.
std::vector<double> peak_relay_bytes(const Topology& topology, const Demand& demand,
                                     std::span<const Send> sends);

}  // namespace rondo
