#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "deliveries.hpp"

namespace rondo {

/// Memory of GPUs for what they only pass on (FORMATS.md 3, rule 12). A chunk takes its bytes at all its
/// relays when it sets out for the first of them, and gives them back when its last transfer has left: so no
/// two chunks wait for each other's memory.
class RelayReservations {
 public:
  RelayReservations(const Topology& topology, const Demand& demand, const Deliveries& deliveries);

  /// Whether the chunk may set out for the receiver now.
  bool may_enter(std::size_t chunk, GpuId receiver) const;
  /// It does, for a receiver that lacked it; its sends keep their links until `end_us`. When its memory is
  /// free again, if this was its last transfer.
  std::optional<double> enter(std::size_t chunk, GpuId receiver, double end_us);
  void release(std::size_t chunk);

 private:
  const std::vector<GpuId>& relays(std::size_t chunk) const { return relays_[chunk / chunks_each_]; }

  const Demand& demand_;
  std::size_t chunks_each_;
  std::vector<double> free_bytes_;          ///< per GPU
  std::vector<std::vector<GpuId>> relays_;  ///< per contribution, ascending
  std::vector<std::size_t> left_;           ///< per chunk: transfers that have not begun
  std::vector<char> holds_;                 ///< per chunk: has its memory
  std::vector<double> end_us_;              ///< per chunk: of its sends so far
};

}  // namespace rondo
