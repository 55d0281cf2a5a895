#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/local_search/joined_plan.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// A schedule whose messages cost, to improve by what goes together.
struct JoiningTask {
  const Topology& topology;
  const Demand& demand;  ///< in the schedule's chunks
  const Schedule& start;
  int concurrency = kAnyConcurrency;  ///< transfers at a time on a link of a GPU
  std::uint64_t seed = 0;
  double work_limit = 0;  ///< chunks over hops that all tries together may place
  /// Collective, equal on every rank: whether a limit other than work ends the search, given the best finish
  /// time.
  std::function<bool(double finish_us)> stop = [](double) { return false; };
  /// Called between rounds on every rank.
  std::function<void(std::uint64_t rounds, double finish_us)> progress = [](auto...) {};
};

struct Joining {
  std::optional<Schedule> schedule = std::nullopt;  ///< if it ends earlier than the start
  std::uint64_t tries = 0;
  std::uint64_t rounds = 0;
};

/// Collective. Contiguity as TACCL has it (NSDI 2023, 5.1 and appendix B.3), in continuous time and together
/// with routing: transfers of one hop are joined and parted, started earlier or later than others, and their
/// chunks brought to where they are wanted by transfers that go there anyway. In every round simulated
/// annealing begins several times at the best plan. The result is the same on any number of ranks.
Joining join_transfers(const JoiningTask& task, const Communicator& communicator);

}  // namespace rondo
