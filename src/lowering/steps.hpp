#pragma once

#include <vector>

#include "connections.hpp"

namespace rondo::lowering {

/// A step of instance 0. All steps of a program stand in one order that every wait follows.
struct StepNode {
  msccl::StepType type = msccl::StepType::nop;
  int gpu = -1;
  int tb = -1;     ///< in Plan::tbs
  int index = -1;  ///< in its threadblock
  int batch = -1;  ///< that it sends; that it receives where it does not send
  msccl::Range src = {};
  msccl::Range dst = {};
  int src_gpu = -1;              ///< whose place src is: the sender's, where the step reads it its own
  int dst_gpu = -1;              ///< whose place dst is: the receiver's
  int sender = -1;               ///< receive: the step that sends it
  int previous = -1;             ///< in its threadblock
  std::vector<int> waits_for{};  ///< steps of other threadblocks of the GPU
};

struct StepGraph {
  std::vector<StepNode> nodes = {};
  std::vector<int> scratch_chunks = {};  ///< per GPU, of one instance
};

/// Steps in the plan's order, scratch in use only while something is to be read from it, and for every step
/// the others of its GPU that it has to follow because of what they read and write: at most one a
/// threadblock, but implied ones too.
StepGraph make_steps(const Traffic& traffic, const Plan& plan, const Layout& layout, bool reuse_scratch);

/// Leaves of `waits_for` what no other wait, message or threadblock's order implies.
void remove_implied_waits(StepGraph& graph, const Plan& plan);

/// Whether the steps end when a connection holds `depth` sends at most that have not been received.
bool ends_within(const StepGraph& graph, const Plan& plan, int depth);

}  // namespace rondo::lowering
