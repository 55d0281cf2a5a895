#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/engines/rounds.hpp"
#include "rondo/model/solver.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// A schedule to repair, and how long.
struct WindowsProblem {
  const Topology& topology;
  const Demand& demand;  ///< in the chunks of the start, or of the last round that is finished
  std::uint64_t seed = 0;
  int concurrency = kAnyConcurrency;  ///< transfers at a time on a link of a GPU
  std::size_t windows = 8;            ///< of a round, at most
  double bound_us = 0;
  double stop_at_us = 0;  ///< a schedule that ends by then is good enough
  /// The least finish time in so many whole chunks.
  std::function<double(int chunks)> least_us = [](int) { return 0.0; };
  int most_chunks = 1;  ///< that chunks may be split into
  /// Work of all models together, the sum of rows x (simplex iterations + columns), and of replanting; with a
  /// time limit the clock ends the rounds instead.
  double model_work = 0;
  SolveLimits limits = {};  ///< of each call of the solver; its seconds are for all rounds together
  int idle_rounds = 100;    ///< in a row without an earlier finish that end the rounds
};

/// A schedule and its chunks of a contribution.
struct RepairedSchedule {
  Schedule schedule;
  int chunks = 1;
};

/// Collective. Repairs the schedule in windows, round by round. A round is a set of windows: stretches
/// of time that do not touch, around transfers without slack, and what starts last, of several lengths. In
/// each one a MILP looks for other ways of its transfers such that every arrival that the rest of the plan
/// uses comes by its due time minus lambda and every link is free by its own minus lambda, for the greatest
/// lambda (window_model.hpp); all that follows then moves forward by it. The ranks share the windows of a
/// round. What they find is placed and taken where the schedule ends earlier, or at the same time with fewer
/// transfers without slack. Where windows find nothing the round replants (streams.hpp), and where that was
/// in vain too the next round splits all chunks in two if it then does not end later. Every round calls
/// `finish_round` with the schedule as it then is, if it is new, as the record's plan; the last one commits
/// it. Goes on after the rounds that are `finished`, else begins with `start`. A schedule that has no plan
/// (see plan_of) stays as it is. The result never ends later than the start, and is the same on any number of
/// ranks. Throws Error(stopped) when a signal came: the rounds finished so far are whole.
RepairedSchedule repair_in_windows(const WindowsProblem& problem, const Solver& milp,
                                   const Communicator& communicator, const std::vector<RoundRecord>& finished,
                                   const std::optional<Schedule>& start, const FinishRound& finish_round,
                                   RoundsNotes& notes);

}  // namespace rondo
