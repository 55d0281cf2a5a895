#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "connections.hpp"

namespace rondo::lowering {

/// One direction from a GPU to another on one channel, with its batches in order.
struct Connection {
  int src = -1;
  int dst = -1;
  int channel = -1;
  std::vector<int> batches = {};
};

/// Two connections of a GPU that share a threadblock.
struct Pair {
  int incoming = -1;
  int outgoing = -1;
  /// Batches of `outgoing` that leave as soon as one of `incoming` arrives: (that one, they).
  std::vector<std::pair<int, int>> fused = {};
};

/// All departures and arrivals by time, after what they wait for; the batches of a connection arrive as they
/// leave; with a `depth`, a batch leaves once all but so many of those before it have arrived. Not all of
/// them where the orders of connections and partial sums contradict each other.
std::vector<Event> events_by_time(const Traffic& traffic, const std::vector<Connection>& connections,
                                  std::optional<int> depth);

/// Pairs connections of one channel that fuse at least half of the batches of one of them, those that fuse
/// most first. A batch is fused where neither connection has anything between its arrival and its departure;
/// so nothing is later for it.
std::vector<Pair> pair_connections(const std::vector<Batch>& batches,
                                   const std::vector<Connection>& connections,
                                   const std::vector<Event>& events, int max_steps);

}  // namespace rondo::lowering
