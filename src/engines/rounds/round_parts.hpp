#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/decomp/decomposition.hpp"
#include "rondo/model/round_model.hpp"
#include "round_plan.hpp"

namespace rondo {

/// The window of one round.
struct RoundWindow {
  double begin_us = 0;
  double tau_us = 1;
  int epochs = 1;
  std::int64_t round = 0;
  double end_us() const { return begin_us + epochs * tau_us; }
};

/// A move in whole epochs from the beginning of the round.
struct PlacedMove {
  ChunkId chunk;
  int hop = 0;
  int epoch = 0;
};

/// What a part is asked in a round, and what the numbers of its model mean.
struct PartTask {
  RoundProblem problem;
  std::vector<RoundStart> start;  ///< of the plan, where there is one
  std::vector<PlacedMove> kept;   ///< moves of the plan that the model is not asked about
  std::vector<ChunkId> chunks;    ///< per chunk of the problem
  std::vector<int> hops;          ///< per path of the problem
  std::string refusal = {};       ///< why there is no model: "" or what was too large

  PlacedMove moved(const RoundStart& chosen) const {
    return {chunks[static_cast<std::size_t>(chosen.chunk)], hops[static_cast<std::size_t>(chosen.path)],
            chosen.epoch};
  }
};

struct PartOptions {
  double gamma = 0.9;
  std::size_t max_columns = 4000;  ///< binaries of a model, about; further chunks are left to the plan
  std::uint64_t seed = 0;
};

/// `plan`: the moves of the incumbent that start in the window, by start; `decided`: what stages before have
/// chosen.
PartTask make_part_task(const Topology& topology, const HopTable& hops, const Demand& demand,
                        const CommittedSchedule& committed, const Decomposition& decomposition,
                        const Part& part, const RoundWindow& window, const std::vector<Move>& plan,
                        const std::vector<PlacedMove>& decided, const std::vector<double>& relay_us,
                        const PartOptions& options);

/// Epochs from the start of a hop until the chunk can be sent on.
int landing_epochs(const Hop& hop, double bytes, double tau_us);

}  // namespace rondo
