#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "deliveries.hpp"
#include "list_rules.hpp"

namespace rondo {

/// Who holds or has been promised what while a schedule is made: how far each GPU is from the nearest holder
/// of each chunk, whether waiting for it pays, and which chunks go first.
class HolderTable {
 public:
  HolderTable(const HopTable& hops, const Demand& demand, const Deliveries& deliveries,
              const ListRules& rules);

  /// Bytes of the chunks, each once.
  const std::vector<double>& chunk_sizes() const { return class_bytes_; }
  /// At `now_us` the chunk is on its way to the receiver.
  void promise(std::size_t chunk, GpuId receiver, double arrival_us, double now_us);
  /// The chunk has arrived.
  void land(std::size_t chunk, GpuId gpu);
  /// Of a chunk, what distances are measured by: kNearOfChunk, but whole chunks where arrivals are compared
  /// and where links change.
  double near_share() const { return near_share_; }
  /// Whether the receiver had better wait for a nearer holder than take the chunk over a hop, which takes
  /// `duration_us` for near_share() of it.
  bool better_wait(std::size_t chunk, std::size_t receiver, double duration_us, double t_us) const;
  /// By how much of all distances the chunk comes nearer to those that wait for it if the GPU gets it, 0
  /// to 1.
  double progress(std::size_t chunk, GpuId gpu) const;
  /// Smaller goes first. The low 16 bits are left to chance.
  std::uint64_t key(std::size_t chunk) const { return key_[chunk]; }

 private:
  struct Expectation {
    double lands_us = 0;                                          ///< at the promised holder
    double arrives_us = std::numeric_limits<double>::infinity();  ///< relayed from there
  };
  void update_key(std::size_t chunk);
  const double* relay_us_from(std::size_t chunk, GpuId gpu) const {
    const std::size_t contribution = chunk / static_cast<std::size_t>(demand_.chunks_per_contribution());
    return relay_us_[size_class_[contribution]].data() + gpu.index() * num_gpus_;
  }
  double near_us(std::size_t chunk, std::size_t gpu) const { return near_us_[chunk * num_gpus_ + gpu]; }

  const Demand& demand_;
  const Deliveries& deliveries_;
  const ListRules& rules_;
  std::size_t num_gpus_;
  double near_share_;
  std::vector<std::size_t> size_class_;        ///< per contribution: chunks of equal bytes
  std::vector<double> class_bytes_;            ///< per size class
  std::vector<std::vector<double>> relay_us_;  ///< per size class: HopTable::relay_distance_us
  std::vector<double> diameter_us_;            ///< per size class: the greatest finite relay distance
  std::vector<float> near_us_;  ///< (chunk, GPU): distance from the nearest current or promised holder
  /// Rule `soonest`, per (chunk, GPU): distance from the nearest GPU that holds it, and the promise that
  /// would bring it first.
  std::vector<float> held_near_us_;
  std::vector<Expectation> expected_;
  std::vector<int> holders_;  ///< per chunk, promised ones included
  std::vector<std::uint64_t> key_;
};

}  // namespace rondo
