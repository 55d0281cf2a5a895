#pragma once

#include <map>
#include <span>
#include <vector>

#include "list/list_scheduler.hpp"
#include "rondo/core/chunk_gpu_table.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// Finds the hops of sends again: every send belongs to one hop, all of whose links carry the chunk one after
/// another. Not by transfers_of (transfers.hpp): where copies of a chunk cross a switch at one instant, it
/// may join them to paths that the table, which holds a few for each pair of GPUs, does not have.
class HopFinder {
 public:
  HopFinder(const HopTable& hops, const Demand& demand);
  /// By start, then in the order of the hops. Throws Error(bad_data) for sends that no hop of the table
  /// explains.
  std::vector<Move> moves_of(std::span<const Send> sends) const;

 private:
  const HopTable& hops_;
  const Demand& demand_;
  std::map<LinkId, std::vector<int>> hops_from_link_;
};

/// The sends that the rounds have committed: who holds what from when on, and which links are taken.
class CommittedSchedule {
 public:
  CommittedSchedule(const Topology& topology, const HopTable& hops, const Demand& demand);

  /// Commits the sends.
  void fix(std::span<const Send> sends);
  /// When the GPU holds the chunk; infinite where nobody has sent it.
  double held_from_us(ChunkId c, GpuId g) const { return held_from_us_(c, g); }
  double link_free_us(LinkId l) const { return timetable_.free_from(l); }
  /// Starts the moves in their order, each as early after `not_before_us` as what is committed and the moves
  /// before it allow, and returns their sends. A move is left out where its source never holds the chunk or
  /// its destination has it.
  std::vector<Send> realise(std::span<const Move> moves, double not_before_us) const;
  /// For the list scheduler: what is committed, with `more` sends that are not.
  PartialSchedule partial(double time_us, std::span<const Send> more) const;
  RoundState state(double time_us) const;
  bool all_met() const;

 private:
  void receive(std::span<const Send> sends, ChunkGpuTable<double>& held_from_us) const;

  const Topology& topology_;
  const HopTable& hops_;
  const Demand& demand_;
  LinkTimetable timetable_;
  ChunkGpuTable<double> held_from_us_;
  std::vector<Send> recent_;  ///< those that may still occupy links
};

}  // namespace rondo
