#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/core/schedule.hpp"

/// What one round of the round loop (TE-CCL, section 4.2 and appendix D) leaves behind: the content of a
/// round file.
namespace rondo {

/// A GPU holds a chunk from a time on.
struct Holding {
  ChunkId chunk;
  GpuId gpu;
  double from_us = 0;
  friend auto operator<=>(const Holding&, const Holding&) = default;
};

/// A chunk that a GPU wants and that nobody has sent to it yet.
struct UnmetDemand {
  ChunkId chunk;
  GpuId gpu;
  friend auto operator<=>(const UnmetDemand&, const UnmetDemand&) = default;
};

/// What is where when a round ends. All three lists are sorted.
struct RoundState {
  double time_us = 0;
  std::vector<Holding> buffers = {};    ///< held by `time_us`, other than at a chunk's origin
  std::vector<Holding> in_flight = {};  ///< the look-ahead state Q: lands later
  std::vector<UnmetDemand> unmet = {};
};

/// One part of a decomposition in one round: who solved it, how large it was and what came of it.
struct RoundPart {
  std::string name = {};     ///< "whole", "pop 2 of 4", "cluster 3"
  std::string outcome = {};  ///< "optimal", "feasible", "kept the start: ...", "copied from ..."
  int rank = 0;
  double seconds = 0;
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t nodes = 0;              ///< of branch and bound
  std::int64_t iterations = 0;         ///< of simplex
  std::int64_t transfers_changed = 0;  ///< of the start, by the model
  double objective_before = 0;         ///< of the start; NaN where there was none
  double objective_after = 0;          ///< NaN where the model was not solved
};

struct RoundRecord {
  std::int64_t round = 0;
  std::int64_t chunks = 1;  ///< a contribution
  double begin_us = 0;
  double end_us = 0;
  std::vector<Send> sends = {};  ///< never chosen anew, sorted as in a Schedule: those of transfers that
                                 ///< start in [begin_us, end_us)
  RoundState state = {};         ///< at end_us
  /// The rest of the best complete schedule that is known, where it is not what the round before left of its
  /// own.
  std::optional<std::vector<Send>> plan = std::nullopt;
  double finish_before_us =
      0;  ///< of the best complete schedule known when the round began; NaN where there was none
  double finish_after_us = 0;
  double bound_us = 0;
  std::vector<RoundPart> parts = {};
};

}  // namespace rondo
