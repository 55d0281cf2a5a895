#pragma once

#include <vector>

#include "batches.hpp"
#include "rondo/msccl/executors.hpp"

namespace rondo::lowering {

/// A threadblock before it has steps. Ids are positions in Plan::tbs.
struct Owner {
  int gpu = -1;
  int send_peer = -1;
  int recv_peer = -1;
  int channel = 0;
};

/// Who carries which batch. `order` is the order of all transfers that every threadblock keeps; a batch that
/// is fused to its parent follows it directly.
struct Plan {
  int num_channels = 1;
  std::vector<Owner> tbs = {};
  std::vector<int> sender = {};    ///< per batch: the threadblock at its source
  std::vector<int> receiver = {};  ///< per batch: the threadblock at its destination
  std::vector<int> order = {};     ///< batches
  std::vector<char> fused = {};    ///< per batch: sent by the very step that received it
};

/// Connections get channels such that on each at most `executor.connections` leave and enter a GPU; one with
/// more than `max_steps` batches is dealt over several channels in turn. Throws Error(unavailable) when the
/// channels do not suffice.
Plan connect(const std::vector<Batch>& batches, int num_gpus, const msccl::Executor& executor, int max_steps);

}  // namespace rondo::lowering
