#pragma once

#include <map>
#include <span>
#include <vector>

#include "list/list_scheduler.hpp"
#include "rondo/core/chunk_gpu_table.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
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

/// What has been decided for good: who holds what from when on, and which links are taken.
class CommittedSchedule {
 public:
  CommittedSchedule(const Topology& topology, const HopTable& hops, const Demand& demand);

  /// Sends that are decided for good.
  void fix(std::span<const Send> sends);
  /// When the GPU holds the chunk; infinite where nobody has sent it.
  double held_from_us(ChunkId c, GpuId g) const { return held_from_us_(c, g); }
  double link_free_us(LinkId l) const { return timetable_.free_from(l); }
  /// What is decided and, in their order, `moves`, each as early as it can from `not_before_us` on. Moves of
  /// chunks that their GPU does not get, or that the other one has, are left out. Returns the sends of the
  /// moves alone.
  std::vector<Send> realise(std::span<const Move> moves, double not_before_us) const;
  /// For the list scheduler, with `more` sends that are not decided for good.
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
