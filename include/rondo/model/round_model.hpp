#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rondo/model/linear_model.hpp"
#include "rondo/model/solver.hpp"

/// One round of the round loop as a model sees it: local numbers, whole epochs from the beginning of the
/// round.
namespace rondo {

/// What one part of a topology decides in one round. Nodes are GPUs (0..num_nodes-1), links and chunks are
/// numbered from 0 as well. A chunk that starts on a path in epoch k occupies the links of the path from k *
/// tau_us + offset on and can be sent on in epoch k + landing, in this round or in any later one.
struct RoundProblem {
  struct LinkUse {
    int link = 0;
    double offset_us = 0;
    double duration_us = 0;
    friend bool operator==(const LinkUse&, const LinkUse&) = default;
  };
  /// From a GPU to a GPU through switches, reserved as a whole: at the border of a round nothing is left in a
  /// switch.
  struct Path {
    int src = 0;
    int dst = 0;
    int landing = 1;  ///< epochs, >= 1
    std::vector<LinkUse> links = {};
    int period = 1;  ///< only epochs k with k % period == phase are this problem's to start in
    int phase = 0;
    friend bool operator==(const Path&, const Path&) = default;
  };
  struct Holder {
    int node = 0;
    int epoch = 0;  ///< from which it can send the chunk; beyond num_epochs for what lands in a later round
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  struct Chunk {
    std::vector<Holder> holders = {};  ///< ascending nodes, current and promised
    std::vector<int> unmet = {};       ///< ascending nodes that want it, none of them a holder
    friend bool operator==(const Chunk&, const Chunk&) = default;
  };
  struct Blocked {
    int link = 0;
    double begin_us = 0;
    double end_us = 0;
    friend bool operator==(const Blocked&, const Blocked&) = default;
  };

  double tau_us = 1;
  int num_epochs = 1;
  int num_nodes = 0;
  int num_links = 0;
  std::vector<Path> paths = {};
  std::vector<Chunk> chunks = {};
  std::vector<Blocked> blocked = {};  ///< times that links are not this problem's to use
  std::vector<double> distance = {};  ///< from node to node in epochs, relays included: src * num_nodes + dst
  std::vector<int> group = {};  ///< per node: nodes of one group receive a chunk once between them; empty:
                                ///< every node is its own group
  double gamma = 0.9;           ///< worth of coming closer to a destination, against reaching it

  friend bool operator==(const RoundProblem&, const RoundProblem&) = default;
};

/// Later than any epoch.
inline constexpr int kNeverEpoch = 1 << 28;

/// Per node, the earliest epoch in which it can have the chunk; kNeverEpoch where no path leads to it within
/// the round. For a holder this is the epoch of its Holder entry.
std::vector<int> earliest_epochs(const RoundProblem& problem, const RoundProblem::Chunk& chunk);

struct RoundStart {
  int chunk = 0;
  int path = 0;
  int epoch = 0;
  friend auto operator<=>(const RoundStart&, const RoundStart&) = default;
};

/// A round's model and the meaning of its solutions. All members are pure.
struct BuiltRound {
  LinearModel model;
  std::function<std::vector<RoundStart>(const Solution&)> decode;
  /// Values of all columns; nothing where the starts do not fit the model.
  std::function<std::optional<std::vector<double>>(const std::vector<RoundStart>&)> encode;
};

using RoundFormulation = std::function<BuiltRound(const RoundProblem&)>;

}  // namespace rondo
