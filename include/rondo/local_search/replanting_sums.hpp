#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/deadline.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

struct SumReplantingTask {
  const Topology& topology;
  const Demand& demand;      ///< in as many chunks as the schedule has
  const Schedule& schedule;  ///< that the replay accepts
  double bound_us = 0;
  std::uint64_t seed = 0;
  int concurrency = kAnyConcurrency;  ///< transfers at a time on a link of a GPU
  /// Limit on the transfers of all trees that grow, about as costly each as a send of list scheduling.
  double work_limit = 0;
  /// Collective, equal on every rank, before each round: whether a limit other than work ends the search.
  std::function<bool(double finish_us)> stop = {};
  Deadline deadline = {};  ///< by the clock of this rank
};

/// Whether sums of this demand are for all GPUs, on a topology on whose schedules it works.
bool may_replant_sums(const Topology& topology, const Demand& demand);

/// Collective. Local search over sums for all GPUs as a whole, where adding up and spreading overlap: double
/// justification, and chains of replanting (replanting_chain.hpp), whose steps let the parts of a chunk meet
/// at another time, sometimes at another GPU, and grow the trees along which they get there and the sum
/// spreads anew, in the time that the trees of other chunks leave. In each round the ranks make a fixed
/// number of chains from the best plan; rounds go on while they gain enough. Nothing where that ends no
/// earlier than the schedule, or this is not made of such trees. The same on any number of ranks.
std::optional<Schedule> replanted_sums(const SumReplantingTask& task, const Communicator& communicator);

}  // namespace rondo
