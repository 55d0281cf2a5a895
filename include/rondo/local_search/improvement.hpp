#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/local_search/orbit_plans.hpp"
#include "rondo/model/deadline.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Whether a restart obeys interrupts and the time limit. Schedules found before are scheduled again without
/// limits.
enum class RestartLimits : std::uint8_t { of_search, none };

/// The schedules to improve, and when to stop.
struct ImprovementTask {
  const Topology& topology;
  const Demand& demand;  ///< in any number of chunks
  double bound_us = 0;
  std::uint64_t seed = 0;
  /// The best known schedules, one for each number of chunks, ascending; the same on every rank.
  struct Start {
    int chunks = 1;
    double finish_us = 0;
    std::function<Schedule()> schedule = {};
    std::optional<std::size_t> variant = {};  ///< of a restart
  };
  std::vector<Start> starts = {};
  const OrbitPlans* orbits = nullptr;  ///< only symmetric plans are looked for; null: any
  bool is_kept = false;                ///< the best start was searched before, and is the one to begin with
  double known_us = std::numeric_limits<double>::infinity();  ///< finish time that others have reached
  int concurrency = kAnyConcurrency;                          ///< transfers at a time on a link of a GPU
  int most_chunks = 1;  ///< that plans may be split into; a start may have more
  /// Chunk counts, ascending, in which a restart of list scheduling may end earlier than every start.
  std::vector<int> restart_chunks = {};
  /// The schedule of a restart; `variant` numbers the pairs of policy and seed. Nothing where a limit ended
  /// it.
  std::function<std::optional<Schedule>(int chunks, std::size_t variant, RestartLimits limits)> restart = {};
  /// What a restart costs for each of its transfers; more than 1 where list scheduling looks at many hops.
  double restart_work = 1;
  /// Lower bound of the finish time in this many whole chunks.
  std::function<double(int chunks)> least_us = [](int) { return 0.0; };
  /// Limit on the transfers of all neighbours and restarts together; one costs about as much as a send of
  /// list scheduling.
  double work_limit = 0;
  /// Of this, what may be in vain, without a counting success, before the search ends in the most chunks.
  double idle_work = 0;
  /// Work in a row that may bring nothing nearer to the bound.
  double gainless_work = std::numeric_limits<double>::infinity();
  std::uint64_t idle_tries = 192;  ///< these may be in vain in any case
  /// Neighbours of the incumbent that are made between two synchronisations, at most. With more than 8 their
  /// changes are merged.
  std::size_t most_streams = 8;
  /// Collective, equal on every rank: whether a limit other than work ends the search, given the best finish
  /// time.
  std::function<bool(double finish_us)> stop = {};
  /// Collective, equal on every rank: whether a signal ends the search.
  std::function<bool()> interrupted = [] { return false; };
  /// Collective, equal on every rank: the share of the time limit that is over; 0 without a time limit.
  std::function<double()> time_spent = [] { return 0.0; };
  double time_limit_s = 0;  ///< 0: none
  /// By the clock of this rank, when the step that begins now has to end; with a time limit alone.
  std::function<Deadline()> deadline = {};
  /// Estimated share of the time limit that a restart takes for each transfer when all ranks work; 0:
  /// unknown.
  double restart_share = 0;
  /// Called between rounds on every rank.
  std::function<void(std::uint64_t rounds, int chunks, double finish_us)> progress = [](auto...) {};
  /// Collective, called after every whole round. `state` packs the state of the search, from which a later
  /// improve() of the same task can resume; `ends` marks the last call.
  std::function<void(const std::function<Bytes()>& state, bool ends)> keep = [](const auto&, bool) {};
};

/// The origin of a schedule: a start in `chunks` chunks, or a restart of this variant.
struct ImprovementOrigin {
  int chunks = 0;
  std::optional<std::size_t> variant = {};
};

struct Improvement {
  std::optional<Schedule> schedule = std::nullopt;  ///< if it ends earlier than all that is known
  int chunks = 0;
  ImprovementOrigin origin = {};  ///< of the schedule
  std::uint64_t tries = 0;
  std::uint64_t successes = 0;
  std::uint64_t merged = 0;  ///< changes that streams made besides the best one of their round
  bool out_of_work = false;
  bool out_of_time = false;  ///< too little time was left for a further step
};

/// Whether a search for the demand begins with replanting: switches join GPUs, and every GPU wants
/// everything.
bool begins_with_replanting(const Topology& topology, const Demand& demand);

/// Collective. Large-neighbourhood search over plans. It begins with few chunks, whose neighbours
/// (neighbours.hpp) are cheap to evaluate; a start in more chunks races with that where work is limited. In
/// every round the ranks evaluate neighbours of the incumbent (where switches join GPUs, first chains of
/// replanting in plans that are not large); the best one, or one with the changes of several, replaces it if
/// it ends earlier, or at the same time with the most loaded links free earlier. When rounds no longer
/// improve the incumbent, list scheduling restarts in more chunks. Then every chunk is split in half, or the
/// best start in more chunks replaces the incumbent if it ends earlier. `from`: a state that an earlier run
/// of the same task has kept. The result is the same on any number of ranks. The search ends where `stop`
/// says so, at the work limit, or after rounds without success in the most chunks. Schedules of more than
/// kMostPlannedTransfers transfers, or in which chunks wait in a switch, stay unchanged.
Improvement improve(const ImprovementTask& task, const Communicator& communicator,
                    const std::optional<Bytes>& from = {});
/// A level of more transfers would take tens of seconds, during which no time limit can end it.
inline constexpr double kMostPlannedTransfers = 7e5;
/// Neighbours that the ranks together evaluate in a round, at least.
inline constexpr std::size_t kTriesPerRound = 8;

}  // namespace rondo
