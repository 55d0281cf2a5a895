#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/model/satisfiability.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// The synchronous algorithms that trade steps against rounds (SCCL, PPoPP 2021, algorithm 1).
namespace rondo {

/// One question of the walk, and its answer. In the problem's own figures: of AllReduce those of both halves.
struct FrontierTrial {
  int chunks = 0;  ///< a contribution
  int steps = 0;
  int rounds = 0;
  SatStatus status = SatStatus::unknown;  ///< unknown: beyond max_conflicts
  std::int64_t conflicts = 0;

  double rounds_per_chunk() const { return static_cast<double>(rounds) / chunks; }
};

struct FrontierOptions {
  int extra_rounds = 4;  ///< rounds are at most the steps and so many (SCCL's k); of AllReduce in each half
  int most_steps = 16;
  std::int64_t max_conflicts = -1;  ///< of a question; -1 = none
  /// The file for the proof that there is none.
  std::function<std::filesystem::path(const FrontierTrial&)> proof = nullptr;
  std::vector<FrontierTrial> known = {};  ///< of an earlier start
  /// Collective. Called with all answers so far, after every few.
  std::function<void(const std::vector<FrontierTrial>&)> keep = nullptr;
};

struct FrontierPoint {
  FrontierTrial trial = {};
  /// All that would be cheaper in as many steps, and that the bandwidth allows, is refuted.
  bool is_least = true;
};

struct Frontier {
  std::vector<FrontierPoint> points = {};  ///< from few steps to many, from many rounds a chunk to few
  std::vector<FrontierTrial> trials = {};  ///< all that was asked, in order
  /// No algorithm has fewer rounds a chunk: `bound` is on the problem's links without latency and message
  /// costs.
  double least_rounds_per_chunk = 0;
  LowerBound bound;
  bool meets_bound = false;  ///< the last point does: no further steps gain anything
};

/// Collective. From as few steps as the farthest data need on: the fewest rounds a chunk, until the bound on
/// bandwidth is met. Questions are dealt over the ranks; the same answers on any number of them. Throws
/// Error(unavailable) for what engine steps does not know, Error(stopped) where interrupted.
Frontier walk_frontier(const Problem& problem, const FrontierOptions& options, const RunContext& context);

/// The problem that asks engine steps for this point.
Problem problem_of(const Problem& problem, const FrontierTrial& trial);

/// The sizes for which a point costs least, S alpha + R / C L beta: [from, to); empty where others are always
/// as cheap. `alpha_us`: of a step; `chunk_us_per_byte`: of a round in one chunk a contribution, for each
/// byte of the size.
struct SizeInterval {
  double from_bytes = 0;
  double to_bytes = 0;  ///< infinite for the last one
  bool is_empty() const { return from_bytes >= to_bytes; }
};
std::vector<SizeInterval> size_intervals(const std::vector<FrontierPoint>& points, double alpha_us,
                                         double chunk_us_per_byte);

}  // namespace rondo
