#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A chunk over one hop, once all that it rests on has arrived.
struct Task {
  int hop = 0;  ///< of TaskGraph::hops
  ChunkId chunk = {};
  SendOp op = SendOp::copy;
  int rests_on = 0;            ///< so many tasks have to arrive before
  std::vector<int> next = {};  ///< tasks that rest on it
};

/// Who sends what to whom after what; when is open.
struct TaskGraph {
  std::vector<Hop> hops = {};
  std::vector<Task> tasks = {};  ///< a task comes after those that it rests on

  /// Adds a task that rests on `causes` and returns its number.
  int add(int hop, ChunkId chunk, SendOp op, const std::vector<int>& causes);
};

/// Per task the time from its start until all that rests on it, directly or not, has arrived.
std::vector<double> times_to_go_us(const TaskGraph& graph, const Demand& demand);

/// What sends of a sum have besides their times.
class SumMarks {
 public:
  explicit SumMarks(const Topology& topology) : topology_(topology) {}

  /// Of one chunk's sends over `hop`: those that enter GPUs have `op`, several that enter a switch are added
  /// up there, and those through switches have numbers, since which of the sends that meet there belong
  /// together is not free.
  void mark(const Hop& hop, SendOp op, std::span<Send> sends);

 private:
  const Topology& topology_;
  std::int32_t transfer_ = kNoTransfer;
};

/// Event-driven list scheduling: of the tasks that wait for a hop the one of the least `rank` goes first;
/// `seed` settles ties. Hops with the most urgent tasks go first. Throws Error(internal) where tasks rest on
/// each other.
Schedule schedule_tasks(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                        const std::vector<double>& rank, std::uint64_t seed,
                        int concurrency = kAnyConcurrency);

/// The same, then backwards in time by the ends of that, then forwards by the starts of that, which fills the
/// links at both ends of the schedule (forward-backward improvement: Li and Willis, 1992); the better of the
/// two. Hops are paths, not trees of copies in switches. Three times the work; where bandwidth changes over
/// time, as schedule_tasks.
Schedule schedule_tasks_there_and_back(const Topology& topology, const Demand& demand, const TaskGraph& graph,
                                       const std::vector<double>& rank, std::uint64_t seed,
                                       int concurrency = kAnyConcurrency);

}  // namespace rondo
