#pragma once

#include <optional>
#include <string>

#include "engine_runner.hpp"
#include "rondo/core/error.hpp"
#include "rondo/pipeline/dealt_schedule.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "search_state.hpp"
#include "stop_rule.hpp"

namespace rondo {

inline constexpr const char* kSearchCheckpoint = "search";

/// Of a time limit, what the portfolio may take where an improvement follows.
inline constexpr double kShareOfPortfolio = 0.4;

/// The best schedule known, on every rank, and where it comes from.
struct Incumbent {
  int chunks = 0;           ///< a contribution
  EngineResult found = {};  ///< with a schedule; without one where rounds begin with nothing
  std::string engine = {};  ///< that found it, with its policy and seed
  std::uint64_t seed = 0;
  bool is_replayed = false;  ///< by this run, on the rank that found it
  /// Where each rank has the sends of its own chunks alone.
  std::optional<DealtSchedule> dealt = std::nullopt;
};

/// What the portfolio has tried and found.
struct Exploration {
  SearchState state = {};
  Incumbent best = {};
  std::vector<SynthesisResult::Candidate> candidates = {};  ///< the best of each engine
  std::vector<RoundRecord> rounds = {};  ///< engine rounds: what each did, without its sends and state
  double round_files_s = 0;              ///< what keeping them took
};

/// What the report says of a fault of Rondo that cost one of several candidates.
std::string left_out(const Error& fault);

/// Another schedule, and in what time one may end that still ends before it once put in an order of its own.
struct ToBeat {
  double finish_us = 0;
  double before_order_us = 0;
};

/// Collective. Candidates (engine, chunk count, policy, seed; see portfolio.hpp) are dealt over the ranks
/// batch by batch; only finish times travel, and the winner at the end. Ends as `rule` says, or when varying
/// the best finds nothing more. The same on any number of ranks. Offers its state to the checkpoints after
/// every batch and resumes from the newest one. Throws Error(unavailable) where a limit came before any
/// schedule. With `deals` a schedule that is too large for local search is dealt over the ranks, and replayed
/// by whoever proves it. With `to_beat`, engines that pipeline are tried no further where more chunks will
/// not end before it, and nothing with other seeds where the best is later than that schedule.
Exploration explore(const Problem& problem, EngineRunner& runner, StopRule& rule, const RunContext& context,
                    bool deals = false, const std::optional<ToBeat>& to_beat = std::nullopt);

}  // namespace rondo
