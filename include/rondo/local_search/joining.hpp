#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/local_search/joined_plan.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Schedules whose messages cost, to improve by what goes together.
struct JoiningTask {
  struct Start {
    int chunks;  ///< a contribution
    Schedule schedule;
  };
  const Topology& topology;
  const Demand& demand;       ///< in any number of chunks
  std::vector<Start> starts;  ///< at least one
  const FreeGroup& group;     ///< of automorphisms of both
  int most_chunks = 1;        ///< a contribution, of plans in other numbers of chunks than a start has
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
  std::optional<Schedule> schedule = std::nullopt;  ///< if it ends earlier than all starts
  int chunks = 0;                                   ///< its own, a contribution
  std::size_t start = 0;                            ///< from which it comes
  std::uint64_t tries = 0;
  std::uint64_t rounds = 0;
};

/// Collective. Contiguity as TACCL has it (NSDI 2023, 5.1 and appendix B.3), in continuous time and together
/// with routing: transfers of one hop are joined and parted, started earlier or later than others, and their
/// chunks brought to where they are wanted by transfers that go there anyway, by simulated annealing in
/// rounds of several chains. All starts begin; round by round the worse half is left, until one goes on
/// alone. With automorphisms first among plans that all of them leave as they are (joined_space.hpp). Plans
/// of few transfers also begin as several of a part of the size, one after another. The result is the same on
/// any number of ranks.
Joining join_transfers(const JoiningTask& task, const Communicator& communicator);

}  // namespace rondo
