#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rondo/core/transfers.hpp"
#include "rondo/execution/program.hpp"

namespace rondo::execution {

/// How long the chunks of a schedule are, scaled, and where every GPU has them: its own in its input, what
/// comes in its output where it wants it, else in scratch. What arrives of a sum waits in scratch besides.
class SchedulePlaces {
 public:
  /// Lays the program's memory out and adds its deliveries. `moved` are the deliveries of the schedule.
  SchedulePlaces(const ProvenSchedule& proven, const std::vector<rondo::Delivery>& moved, double bytes,
                 Program& program);

  std::size_t bytes(ChunkId c) const { return bytes_[c.index()]; }
  /// Where a source has it at first; kNowhere for other GPUs.
  std::size_t home(ChunkId c, GpuId gpu) const;
  /// Where a GPU has what has come of it; kNowhere where nothing comes.
  std::size_t gathered(ChunkId c, GpuId gpu) const { return gathered_[c.index() * gpus_ + gpu.index()]; }
  /// Where what delivery `d` brings of a sum waits.
  std::size_t arrival(std::size_t d) const { return arrival_[d]; }

 private:
  /// Chunks that follow one another in one part of an input: (origin, part). A chunk of a custom demand is
  /// one of its own.
  using Block = std::pair<int, int>;

  const Demand& demand() const { return proven_.demand; }
  bool is_custom() const { return program_.coll == Collective::custom; }
  PartTable::Places parts_of(ChunkId c, GpuId to) const;
  Block block_of(ChunkId c) const;
  void cut_blocks(double bytes, std::size_t unit);
  void cut_custom(double bytes, std::size_t unit);
  void place(const std::vector<rondo::Delivery>& moved);
  void place_custom(std::vector<std::size_t>& input, std::vector<std::size_t>& output);
  std::size_t& gathered_at(ChunkId c, GpuId gpu) { return gathered_[c.index() * gpus_ + gpu.index()]; }

  const ProvenSchedule& proven_;
  Program& program_;
  std::size_t gpus_;
  PartTable table_;
  std::vector<PartTable::Places> sums_;  ///< per destination of a collective that combines
  std::size_t block_bytes_ = 0;
  std::vector<std::size_t> offset_, bytes_;            ///< per chunk, in its block
  std::vector<std::vector<std::size_t>> custom_home_;  ///< per chunk and source
  std::vector<std::size_t> gathered_;                  ///< per chunk and GPU
  std::vector<std::size_t> arrival_;                   ///< per delivery
};

}  // namespace rondo::execution
