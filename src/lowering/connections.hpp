#pragma once

#include <optional>
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

enum class Order {
  by_time,          ///< as the schedule has it: a GPU sends other batches while one is in flight
  in_room,          ///< the same, but a batch leaves only when its connection has room for it
  in_room_unfused,  ///< and every batch has steps of its own
  by_transfer,      ///< a batch arrives before the next one leaves
};

/// Who carries which batch. Every threadblock keeps the order of `events`.
struct Plan {
  int num_channels = 1;
  std::vector<Owner> tbs = {};
  std::vector<int> sender = {};    ///< per batch: the threadblock at its source
  std::vector<int> receiver = {};  ///< per batch: the threadblock at its destination
  std::vector<Event> events = {};  ///< fused batches leave when their parents arrive
  std::vector<int> fused = {};  ///< per batch: the batch whose receiving step sends it; -1: a step of its own
};

/// Sends that a connection holds: NCCL's eight buffers in chunk steps of four, under the protocol Simple.
inline constexpr int kFifoDepth = 2;

/// Connections get channels such that on each at most `executor.connections` leave and enter a GPU; one with
/// more than `max_steps` batches is dealt over several channels in turn. Where at least half of a
/// connection's batches go straight on over another, both belong to one threadblock and those batches are
/// fused (in the orders by_time and in_room). Nothing where the order contradicts itself; by_transfer is for
/// traffic without `order` and never does. Throws Error(unavailable) when the channels do not suffice.
std::optional<Plan> connect(const Traffic& traffic, int num_gpus, const msccl::Executor& executor,
                            int max_steps, Order order);

}  // namespace rondo::lowering
