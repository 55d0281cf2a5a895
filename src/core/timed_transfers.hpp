#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/retiming.hpp"

/// The transfers of a schedule as wholes that can be timed anew on the same paths.
namespace rondo {

/// All sends of one transfer, through store-and-forward switches as well.
struct TransferSends {
  std::vector<int> sends = {};  ///< by start
  double start_us = 0;          ///< the first leaves a GPU
};

/// In the order of starts: what a transfer rests on has started before.
std::vector<TransferSends> transfers_by_start(const Topology& topology, std::span<const Send> sends);

/// The links of a transfer as a hop, and its chunks.
struct TransferShape {
  Hop hop = {};
  std::vector<ChunkId> chunks = {};
  double bytes = 0;
  double rate_GBps = 0;  ///< asked for; 0: none
};

TransferShape shape_of(const TransferSends& transfer, const TimedSends& before, const Topology& topology,
                       const Demand& demand);

/// When `gpu` has the data of the contribution by itself; -1 where it is no source.
double own_ready_us(const Contribution& part, GpuId gpu);

/// Reserves the transfer from `start_us` on and appends its sends, in the order of `transfer.sends`. Numbers
/// that sends need anew are `next_number` and up, which then moves on.
void append_transfer(const TransferSends& transfer, const TransferShape& shape, const TimedSends& before,
                     double start_us, LinkTimetable& timetable, std::int32_t& next_number,
                     std::vector<Send>& sends);

}  // namespace rondo
