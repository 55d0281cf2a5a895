#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What is to be improved, and with what.
struct ImprovementTask {
  const Topology& topology;
  const Demand& demand;  ///< in the chunks of the incumbent
  const PreparedEngine& engine;
  EngineOptions options;                   ///< of every try; policy, seed and kept moves are the search's own
  std::vector<std::string> policies = {};  ///< that tries draw from
  double work_per_schedule = 1;            ///< of a try that keeps nothing
  double work_limit = 0;
  /// Collective, alike on every rank: whether a limit other than work has come, given the incumbent's finish.
  std::function<bool(double finish_us)> stop = {};
};

struct Improvement {
  std::vector<Move> moves;  ///< of the best schedule
  double finish_us = 0;
  std::size_t tries = 0;
  std::size_t successes = 0;
  bool out_of_work = false;
};

/// Collective. Large-neighbourhood search (Shaw, "Using constraint programming and local search methods to
/// solve vehicle routing problems", CP 1998): again and again the moves of the incumbent from some instant on
/// are freed and the engine goes on from there with another policy and seed; of the tries of one round, which
/// are dealt over the ranks, the best replaces the incumbent if it ends earlier, or, ending at the same time,
/// has its GPUs done earlier on average. How much is freed is learned from what succeeded. The same on any
/// number of ranks. Ends where `stop` says so, at the work limit, or after rounds without success.
Improvement improve(const ImprovementTask& task, std::vector<Move> incumbent, double finish_us,
                    const Communicator& communicator);

}  // namespace rondo
