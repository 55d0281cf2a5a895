#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/local_search/neighbours.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Whether streams may replant: messages cost nothing (what goes together makes no plan), and every GPU wants
/// everything.
bool may_replant(const PlanSpace& space);

/// What the streams of one round have found.
struct StreamRound {
  std::vector<PlanQuality> qualities = {};            ///< per stream; infinite where it changed nothing
  std::optional<TransferPlan> winner = std::nullopt;  ///< the same on every rank; nothing if none is better
  std::size_t tries = 0;                              ///< of streams and of merging together
  std::size_t merged = 0;                             ///< streams whose changes the winner has
  bool took_long = false;                             ///< chains of replanting ended early for that
};

struct StreamTask {
  const SurveyedPlan& incumbent;
  const PlanSpace& space;
  double bound_us = 0;
  /// How long chains of replanting are, in tries of other moves, where may_replant(): trees of late chunks
  /// are taken out and grown anew; 0: neighbours by other moves.
  std::size_t replanting = 0;
};

/// Collective. One neighbour of the incumbent a seed, each made by one rank. With `merge`, where several are
/// better, the best two, four, eight and so on of them are merged (merging.hpp), each number by one rank. The
/// winner is the best of all, without useless transfers. The same on any number of ranks, unless the deadline
/// of the space comes before all are made: those of the others count then.
StreamRound play_streams(const StreamTask& task, const std::vector<std::uint64_t>& seeds, bool merge,
                         const Communicator& communicator);

/// The seeds of the neighbours that are better than the plan they were made of: a few, the best first.
std::vector<std::uint64_t> better_seeds(const std::vector<std::uint64_t>& seeds,
                                        const std::vector<PlanQuality>& qualities, const PlanQuality& before);

}  // namespace rondo
