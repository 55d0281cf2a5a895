#pragma once

#include <map>
#include <vector>

#include "plan_messages.hpp"
#include "switch_use.hpp"

namespace rondo {

/// Messages of a GPU that its switch makes of one store.
struct PlanMulticast {
  std::vector<int> messages = {};  ///< in PlanMessages::all
  std::vector<int> ranks = {};     ///< all that the switch stores at, the GPU itself too, ascending
  msccl::Range to = {};            ///< there
};

struct PlanMulticasts {
  using Step = PlanMessages::Step;

  std::map<Step, PlanMulticast> by_step = {};  ///< the step that stores
  std::map<Step, Step> instead = {};           ///< for a step that does nothing now: that one
  /// Per GPU what its own stores write of its output: offset and chunks.
  std::vector<std::map<int, int>> stored_here = {};
};

/// A switch stores at one place of all GPUs of a group, the sender included. So the messages have to come to
/// one place of the output, where the sender has the same data or copies it; they stay within a node.
/// Channels of `messages` become those of the step that stores.
PlanMulticasts multicasts_of(const msccl::Program& program, const lowering::MulticastSteps& steps,
                             const std::vector<int>& node_of, PlanMessages& messages);

}  // namespace rondo
