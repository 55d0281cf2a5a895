#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

/// What the report of a run of engine rounds says about the parts of its rounds and the ranks that solved
/// them.
namespace rondo::benchmarks {

struct SolvedPart {
  int rank = 0;
  double seconds = 0;
};

/// Parts that do not depend on each other; a round's next stage waits for all of them.
using Stage = std::vector<SolvedPart>;

struct RoundWork {
  std::vector<std::vector<Stage>> rounds;  ///< the stages of each round
  int solved = 0;                          ///< parts whose model was solved,
  int copied = 0;                          ///< whose answer another part with an equal model gave,
  int kept = 0;                            ///< and that had none: they kept the start
  std::int64_t transfers_changed = 0;      ///< of the start, by the models

  /// Of all parts of all rounds.
  double part_seconds() const;
  /// Sum over the rounds of the largest sum of part seconds on a rank.
  double busiest_seconds() const;
  /// As `busiest_seconds`, with a barrier between the stages of a round: the time that solving takes at
  /// least.
  double staged_seconds() const;
};

RoundWork round_work(const nlohmann::ordered_json& report);

}  // namespace rondo::benchmarks
