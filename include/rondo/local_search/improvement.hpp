#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Whether scheduling anew heeds interrupts and the time limit; what has been found already does not.
enum class RestartLimits : std::uint8_t { of_search, none };

/// What is to be improved, and how far.
struct ImprovementTask {
  const Topology& topology;
  const Demand& demand;  ///< in any number of chunks
  double bound_us = 0;
  std::uint64_t seed = 0;
  /// The best schedules known, one a number of chunks, ascending; the same on every rank.
  struct Start {
    int chunks = 1;
    double finish_us = 0;
    std::function<Schedule()> schedule = {};
    std::optional<std::size_t> variant = {};  ///< of a restart
  };
  std::vector<Start> starts = {};
  int most_chunks = 1;  ///< that plans may be split into; of the starts there may be more
  /// Chunk counts, ascending, in which list scheduling anew may end earlier than every start.
  std::vector<int> restart_chunks = {};
  /// What its variant 0, 1, ... gives; nothing where a limit comes first, if there are to be limits.
  std::function<std::optional<Schedule>(int chunks, std::size_t variant, RestartLimits limits)> restart = {};
  /// What no schedule in whole chunks ends before.
  std::function<double(int chunks)> least_us = [](int) { return 0.0; };
  /// Transfers of all neighbours and restarts: about what list scheduling of as many sends takes.
  double work_limit = 0;
  /// Collective, alike on every rank: whether a limit other than work has come, given the best finish.
  std::function<bool(double finish_us)> stop = {};
  /// Collective, alike on every rank: whether the search is to end at once.
  std::function<bool()> interrupted = [] { return false; };
  /// Collective, alike on every rank: how much of the time limit is over, as a share; 0 where there is none.
  std::function<double()> time_spent = [] { return 0.0; };
  double time_limit_s = 0;  ///< 0 where there is none
  /// Of the time limit, about what a restart takes for a transfer, all ranks at work; 0: not known.
  double restart_share = 0;
  /// Called between rounds on every rank.
  std::function<void(std::uint64_t rounds, int chunks, double finish_us)> progress = [](auto...) {};
  /// Collective, after every whole round: `state` is how far the search is, for a later improve() of the same
  /// task; `ends`: nothing comes after it.
  std::function<void(const std::function<Bytes()>& state, bool ends)> keep = [](const auto&, bool) {};
};

/// Where a schedule comes from: a start in so many chunks, or a variant of a restart.
struct ImprovementOrigin {
  int chunks = 0;
  std::optional<std::size_t> variant = {};
};

struct Improvement {
  std::optional<Schedule> schedule = std::nullopt;  ///< if it ends earlier than every start
  int chunks = 0;
  ImprovementOrigin origin = {};  ///< of the schedule
  std::uint64_t tries = 0;
  std::uint64_t successes = 0;
  bool out_of_work = false;
  bool out_of_time = false;  ///< it was the end of the time, coming near, that ended it
};

/// Collective. Large-neighbourhood search over plans of few chunks first, whose neighbours (neighbours.hpp)
/// are quickly known; of the neighbours of a round, which are dealt over the ranks, the best replaces the
/// incumbent if it ends earlier, or, ending at the same time, leaves the most loaded links free earlier.
/// Where nothing better comes for a while all is freed: list scheduling begins anew in more chunks. Then
/// every chunk is split in half, or the best start in more chunks is taken if that is better. `from`: a state
/// that an earlier run of the same task has kept. The same on any number of ranks. Ends where `stop` says so,
/// at the work limit, or after rounds without success in the most chunks. Plans are not made of schedules
/// that copy in switches, nor of more transfers than kMostPlannedTransfers: these stay as they are.
Improvement improve(const ImprovementTask& task, const Communicator& communicator,
                    const std::optional<Bytes>& from = {});
/// One level of more takes tens of seconds, which no time limit ends.
inline constexpr double kMostPlannedTransfers = 7e5;

}  // namespace rondo
