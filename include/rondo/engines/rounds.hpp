#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/decomp/decomposition.hpp"
#include "rondo/engines/engine.hpp"
#include "rondo/parallel/communicator.hpp"

/// The round loop: TE-CCL's A* technique (section 4.2, appendix D), every round taken apart over the ranks.
namespace rondo {

/// What rounds begin with: the best schedule of the search, whose windows they repair (window_rounds.hpp);
/// the list scheduler's plan, which they also fall back to; or nothing.
enum class RoundsStart : std::uint8_t { best, list, none };

struct RoundOptions {
  int epochs = 0;      ///< of a round; 0: twice what the longest hop takes, within 4 .. 16, and more where
                       ///< there would be more than about 256 rounds
  double gamma = 0.9;  ///< worth of an epoch by which a chunk comes nearer to a destination; of one by
                       ///< which it is there earlier: 1
  RoundsStart start = RoundsStart::best;
  std::int64_t max_columns = 4000;  ///< of a part's model; further chunks are left to the plan
  /// Once a run has a plan, it solves models until their work, the sum of rows x (simplex iterations +
  /// columns), and that of replanting reaches this: at the same round on every machine.
  double model_work = 4e8;
  friend bool operator==(const RoundOptions&, const RoundOptions&) = default;
};

struct RoundsProblem {
  Instance instance;  ///< demand in chunks of equal size
  RoundOptions rounds;
  /// Seed, epochs, limits of each call of the solver; its seconds are for all rounds together.
  EngineOptions engine;
  Decomposition decomposition;
  double bound_us = 0;
  double stop_at_us = 0;  ///< rounds keep a plan that ends by then
};

/// What a user should know besides the schedule.
struct RoundsNotes {
  std::vector<std::string> remarks = {};
  std::vector<std::string> limits_hit = {};  ///< "time", "work": from then on the rounds kept the plan
};

/// Called after every round on every rank, with the same record. Collective where it writes files.
using FinishRound = std::function<void(const RoundRecord&)>;

/// Throws Error(unavailable) for demand that the round loop does not support: chunks of different sizes.
void check_rounds(const Demand& demand);

/// Collective. Goes on after the rounds that are `finished`; `plan` is a complete schedule to start from, or
/// nothing. Round by round: each rank solves the look-ahead models of its parts, the ranks exchange what the
/// parts chose (sparse: chunk, path, epoch), all advance the state alike. A round that would end later than
/// the plan it started from is replaced by that plan's. Returns the schedule reassembled from the records.
/// The same on any number of ranks. Throws Error(unavailable) for chunks of different sizes, Error(stopped)
/// when a signal came: the rounds finished so far are whole.
Schedule solve_rounds(const RoundsProblem& problem, const Toolbox& tools, const Communicator& communicator,
                      const std::vector<RoundRecord>& finished, const std::optional<Schedule>& plan,
                      const FinishRound& finish_round, RoundsNotes& notes);

/// The schedule of all rounds together, without sends that no destination needs. Throws Error(bad_data) where
/// the rounds leave demand unmet.
Schedule reassemble(const Topology& topology, const Demand& demand, const std::vector<RoundRecord>& rounds);

}  // namespace rondo
